//! Worlds of the checks of networks: ports, the data plane, other networks of pods, the plan.

use super::*;

#[test]
fn a_port_counts_on_the_nodes_of_its_component_alone() {
    let worker = json!({"metadata": {"name": "w1", "labels": {"kubernetes.io/os": "linux"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let on = |node: &str, port: u32, without_manager: bool| {
        let pod = json!({"metadata": {"name": "p", "namespace": "other"},
            "spec": {"nodeName": node, "hostNetwork": true, "containers": [{"image": "x", "ports": [{"containerPort": port}]}]},
            "status": {"phase": "Running"}});
        but(|world| {
            known(&mut world.nodes).push(worker.clone());
            known(&mut world.pods).push(pod);
            if without_manager {
                world.managers = Read::Absent;
            }
        })
    };
    for without_manager in [false, true] {
        says(&on("m1", 179, without_manager), "P202", Outcome::Fail, "m1: port 179/TCP of Control");
        assert_eq!(
            outcome(&on("w1", 179, without_manager), "P202"),
            Outcome::Ok,
            "Control is elsewhere"
        );
        says(
            &on("w1", 9091, without_manager),
            "P202",
            Outcome::Fail,
            "w1: port 9091/TCP of Vrouter",
        );
    }
    says(
        &but(|world| world.nodes = forbidden()),
        "P202",
        Outcome::Uncertain,
        "nodes may not be read",
    );
}

#[test]
fn claimed_ports() {
    let other = |name: &str, container: Value| {
        let pod = json!({"metadata": {"name": name, "namespace": "other"},
            "spec": {"nodeName": "m2", "hostNetwork": true, "containers": [container]}, "status": {"phase": "Running"}});
        but(|world| known(&mut world.pods).push(pod))
    };
    says(&good(), "P202", Outcome::Ok, "no other pod claims");
    let exporter =
        other("e", json!({"image": "prom/node-exporter:1", "ports": [{"containerPort": 9100}]}));
    assert_eq!(outcome(&exporter, "P202"), Outcome::Ok, "9100 is no port of a component");
    let webhook = other("w", json!({"image": "x", "ports": [{"containerPort": 9091}]}));
    says(&webhook, "P202", Outcome::Fail, "m2: port 9091/TCP of Vrouter: other/w");
    let bird = json!([{"name": "CALICO_NETWORKING_BACKEND", "value": "bird"}]);
    let bird = other("calico-node-x", json!({"image": "docker.io/calico/node:v3.28", "env": bird}));
    says(&bird, "P202", Outcome::Fail, "port 179/TCP of Control: other/calico-node-x");
    // As in Calico's own manifests, and in those of KubeSpray, which has VXLAN by default.
    let said_elsewhere = json!([{"name": "CALICO_NETWORKING_BACKEND", "valueFrom": {"configMapKeyRef": {"name": "calico-config"}}}]);
    let calico = json!({"image": "rancher/mirrored-calico-node:v3.28", "env": said_elsewhere});
    says(
        &other("c", calico),
        "P202",
        Outcome::Uncertain,
        "179/TCP of Control: other/c, if it listens",
    );
    let metal = other("m", json!({"image": "quay.io/frrouting/frr:9"}));
    assert_eq!(outcome(&metal, "P202"), Outcome::Ok, "the bgpd of MetalLB listens nowhere");
    let dns = json!({"image": "registry.k8s.io/dns/k8s-dns-node-cache:1.23", "ports": [{"containerPort": 53, "protocol": "UDP"}]});
    says(&other("d", dns), "P202", Outcome::Warn, "port 53/UDP of Control");
    let vxlan = json!([{"name": "CALICO_NETWORKING_BACKEND", "value": "vxlan"}]);
    let calico = other("c", json!({"image": "docker.io/calico/node:v3.28", "env": vxlan}));
    assert_eq!(outcome(&calico, "P202"), Outcome::Ok, "without BIRD nothing listens");
    let felix = json!([{"name": "CALICO_NETWORKING_BACKEND", "value": "vxlan"}, {"name": "FELIX_PROMETHEUSMETRICSENABLED", "value": "true"}]);
    says(
        &other("f", json!({"image": "docker.io/calico/node:v3.28", "env": felix})),
        "P202",
        Outcome::Fail,
        "9091/TCP",
    );
    let no_redis = other("r", json!({"image": "redis", "ports": [{"containerPort": 6389}]}));
    assert_eq!(outcome(&no_redis, "P202"), Outcome::Ok, "this Manager has no Redis");
    says(&but(|world| world.pods = forbidden()), "P202", Outcome::Uncertain, "may not be read");
}

#[test]
fn ports_that_services_may_be_given() {
    let api_server = |flag: &str| {
        json!({"metadata": {"name": "kube-apiserver-m1", "namespace": "kube-system"},
            "spec": {"nodeName": "m1", "containers": [{"image": "a", "command": ["kube-apiserver", "--secure-port=6443", flag]}]}})
    };
    let told = |flag: &str| {
        let pod = api_server(flag);
        but(|world| known(&mut world.pods).push(pod))
    };
    let told_ours = told("--service-node-port-range=8000-9999");
    let said = "port 9091/TCP of Vrouter: Services are given ports of 8000 to 9999";
    assert!(verdict(&told_ours, "P202").nodes.iter().any(|one| one.message == said));
    assert_eq!(outcome(&told_ours, "P202"), Outcome::Warn);
    let from_there = told("--service-node-port-range=9091+1");
    says(&from_there, "P202", Outcome::Warn, "Services are given ports of 9091 to 9092");
    says(
        &told("--service-node-port-range=30000-32767"),
        "P202",
        Outcome::Ok,
        "no other pod claims",
    );
    // Of a cluster whose API server is no pod the default is taken, and that is said.
    let high = with_manager(|manager| {
        manager["spec"]["services"]["zookeeper"]["spec"]["serviceConfiguration"]["clientPort"] =
            json!(32_181);
    });
    says(
        &high,
        "P202",
        Outcome::Warn,
        "port 32181/TCP of Zookeeper: Services are given ports of 30000 to 32767, unless the API server has others",
    );
}

#[test]
fn the_data_plane_as_it_is_configured() {
    let with = |settings: Value| {
        with_manager(|manager| {
            manager["spec"]["services"]["vrouters"][0]["spec"]["serviceConfiguration"] = settings
        })
    };
    says(&with(json!({"cniMTU": 1450})), "D304", Outcome::Uncertain, "pods have 1450");
    says(&with(json!({"cniMTU": 0})), "D304", Outcome::Uncertain, "pods have the default");
    let all = "at least 1492 with MPLSoGRE, 1500 with VXLAN (needs --probe)";
    says(&with(json!({"cniMTU": 1450})), "D304", Outcome::Uncertain, all);
    let named = json!({"cniMTU": 1450, "encapsulationPriorities": ["MPLSoUDP", "MPLSoGRE"]});
    says(&with(named), "D304", Outcome::Uncertain, "at least 1496 (needs --probe)");
    says(&with(json!({"cniMTU": 100})), "D304", Outcome::Fail, "Vrouter vrouter1 has 100");
    let two = with_manager(|manager| {
        let item = |name: &str, mtu: i64| json!({"metadata": {"name": name}, "spec": {"serviceConfiguration": {"cniMTU": mtu}}});
        manager["spec"]["services"]["vrouters"] = json!([item("a", 1450), item("b", 1500)]);
    });
    says(&two, "D304", Outcome::Warn, "a 1450, b 1500");
    says(&but(|world| world.managers = forbidden()), "D304", Outcome::Uncertain, "");

    says(&good(), "D306", Outcome::Ok, "report what these ask for");
    let down = with_node(|node| node["status"]["conditions"] = json!([]));
    says(&down, "D306", Outcome::Uncertain, "not ready, so that its pages are not known: m1");
    let same = with_manager(|manager| {
        let item = |name: &str, settings: Value| json!({"metadata": {"name": name}, "spec": {"serviceConfiguration": settings}});
        manager["spec"]["services"]["vrouters"] =
            json!([item("a", json!({})), item("b", json!({"cniMTU": 1500}))]);
    });
    assert_eq!(outcome(&same, "D304"), Outcome::Uncertain, "the default is 1500");
    says(
        &with(json!({"hugePages2M": 1024})),
        "D306",
        Outcome::Fail,
        "m1 has 256 of 1024 hugepages-2Mi",
    );
    says(&with(json!({"hugePages1G": 1})), "D306", Outcome::Fail, "has 0 of 1 hugepages-1Gi");
    assert_eq!(outcome(&with(json!({})), "D306"), Outcome::Skipped);
    says(&but(|world| world.nodes = forbidden()), "D306", Outcome::Uncertain, "");
}

#[test]
fn other_networks_of_pods() {
    let set = |image: &str| {
        json!({"metadata": {"name": "x", "namespace": "kube-system"},
        "spec": {"template": {"spec": {"containers": [{"image": image}]}}}})
    };
    says(&good(), "C401", Outcome::Uncertain, "no DaemonSet");
    let named = |name: &str| json!({"metadata": {"name": name, "namespace": "ns"}});
    for (name, what) in
        [("ovnkube-node", "OVN-Kubernetes"), ("rke2-canal", "Canal"), ("cilium", "Cilium")]
    {
        let world = but(|world| known(&mut world.daemon_sets).push(named(name)));
        says(&world, "C401", Outcome::Uncertain, &format!("{what} (ns/{name})"));
    }
    let calico = but(|world| known(&mut world.daemon_sets).push(set("docker.io/calico/node:v3")));
    says(&calico, "C401", Outcome::Uncertain, "Calico (kube-system/x)");
    let k3s =
        with_node(|node| node["status"]["nodeInfo"]["kubeletVersion"] = json!("v1.34.1+k3s1"));
    says(&k3s, "C401", Outcome::Uncertain, "the network of k3s");
    says(
        &but(|world| world.daemon_sets = forbidden()),
        "C401",
        Outcome::Uncertain,
        "may not be read",
    );
    let calico_set = set("docker.io/calico/node:v3");
    let multus = |world: &mut World| {
        let mut set = set("ghcr.io/k8snetworkplumbingwg/multus-cni:v4");
        set["spec"]["template"]["spec"]["volumes"] =
            json!([{"name": "cni", "hostPath": {"path": "/etc/cni/net.d"}}]);
        set["status"] = json!({"numberAvailable": 3});
        known(&mut world.daemon_sets).push(set);
    };
    let both = but(|world| {
        multus(world);
        known(&mut world.daemon_sets).push(set("docker.io/calico/node:v3"));
    });
    // Of a name alone, which every tenant may give: it has no pods, or they have nothing of their nodes.
    for without in ["/status/numberAvailable", "/spec/template/spec/volumes/0/hostPath"] {
        let forged = but(|world| {
            multus(world);
            let set = known(&mut world.daemon_sets).last_mut().unwrap();
            *set.pointer_mut(without).unwrap() = Value::Null;
            known(&mut world.daemon_sets).push(calico_set.clone());
        });
        says(&forged, "C401", Outcome::Uncertain, "Calico (kube-system/x)");
    }
    says(&both, "C401", Outcome::Ok, "by intent");
    says(&both, "C402", Outcome::Ok, "Multus runs");
    let nested = but(|world| {
        known(&mut world.managers)[0]["spec"]["nested"] = json!({});
        known(&mut world.daemon_sets).push(set("docker.io/calico/node:v3"));
    });
    says(&nested, "C401", Outcome::Ok, "by intent");

    says(&good(), "C402", Outcome::Ok, "no meta plugin");
    says(&but(|world| world.daemon_sets = forbidden()), "C402", Outcome::Uncertain, "");
}

#[test]
fn the_plan_of_networks() {
    says(&good(), "S501", Outcome::Ok, "pods 10.32.0.0/12, Services 10.96.0.0/12");
    let address = |text: &str| {
        let text = text.to_owned();
        with_node(move |node| node["status"]["addresses"][0]["address"] = json!(text))
    };
    says(
        &address("10.40.3.12"),
        "S501",
        Outcome::Fail,
        "the network 10.32.0.0/12 of pods has a node in it: node m1 has 10.40.3.12",
    );
    says(&address("10.64.3.12"), "S501", Outcome::Warn, "of the fabric has a node in it");
    let with = |settings: Value| {
        with_manager(|manager| {
            manager["spec"]["services"]["kubemanager"]["spec"]["serviceConfiguration"] = settings
        })
    };
    says(
        &with(json!({"podSubnet": "10.96.128.0/17"})),
        "S501",
        Outcome::Fail,
        "both have 10.96.128.0/17",
    );
    says(&with(json!({"podSubnet": "169.254.8.0/24"})), "S501", Outcome::Fail, "link-local");
    says(
        &with(json!({"serviceSubnet": "10.112.0.0/16"})),
        "S501",
        Outcome::Fail,
        "the Service kubernetes has 10.96.0.1",
    );
    let fix = verdict(&with(json!({"serviceSubnet": "10.112.0.0/16"})), "S501").fix.unwrap();
    assert!(fix.contains(r#"{"serviceSubnet":"10.96.0.0/12"}"#), "{fix}");
    says(
        &with(json!({"ipFabricSubnets": "10.33.0.0/16"})),
        "S501",
        Outcome::Fail,
        "10.33.0.0/16 of the fabric",
    );
    // Of kubeadm's own networks, whatever they are, nothing is wrong.
    let own = but(|world| {
        world.kubeadm = Read::Known(
            json!({"networking": {"podSubnet": "10.244.0.0/16,fd00:1::/64", "serviceSubnet": "10.10.0.0/16"}}),
        );
        world.service_networks = Read::Known(vec![
            json!({"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.10.0.0/16", "fd00:2::/112"]}}),
        ]);
        world.kubernetes = Read::Known(json!({"spec": {"clusterIP": "10.10.0.1"}}));
        known(&mut world.nodes)[0]["spec"]["podCIDR"] = json!("10.244.1.0/24");
    });
    says(&own, "S501", Outcome::Ok, "pods 10.244.0.0/16");
    says(
        &but(|world| world.nodes = forbidden()),
        "S501",
        Outcome::Uncertain,
        "nodes may not be read",
    );
}

#[test]
fn ranges_of_pods_that_nodes_have_may_be_within_the_network_of_pods_and_not_in_others() {
    let range = |texts: Value| with_node(move |node| node["spec"]["podCIDRs"] = texts);
    let within = range(json!(["10.33.4.0/24", "fd00:1::/64"]));
    says(&within, "S501", Outcome::Ok, "pods 10.32.0.0/12");
    let elsewhere = range(json!(["10.200.4.0/24"]));
    says(&elsewhere, "S501", Outcome::Ok, "pods 10.32.0.0/12");
    says(
        &range(json!(["10.100.4.0/24"])),
        "S501",
        Outcome::Fail,
        "the network 10.96.0.0/12 of Services overlaps the range of pods 10.100.4.0/24 of node m1",
    );
    says(
        &range(json!(["10.64.4.0/24"])),
        "S501",
        Outcome::Warn,
        "of the fabric overlaps the range",
    );
}

#[test]
fn what_is_wrong_in_the_plan_names_the_field_to_change() {
    let address = |text: &str| {
        let text = text.to_owned();
        with_node(move |node| node["status"]["addresses"][0]["address"] = json!(text))
    };
    let unused = address("10.64.3.12");
    assert!(
        verdict(&unused, "S501").fix.unwrap().contains("ipFabricSubnets"),
        "its field is named"
    );
    let planned = but(|world| {
        world.managers = Read::Absent;
        known(&mut world.nodes)[0]["status"]["addresses"][0]["address"] = json!("10.40.3.12");
    });
    let fix = verdict(&planned, "S501").fix.unwrap();
    assert!(fix.starts_with("kubectl opensdn check") && fix.ends_with(".podSubnet"), "{fix}");
}

#[test]
fn addresses_of_pods_are_within_their_network() {
    let pod = |address: &str, more: Value| {
        let mut pod = json!({"metadata": {"name": "p", "namespace": "other"}, "spec": {"nodeName": "m1"},
            "status": {"phase": "Running", "podIP": address}});
        let parts = more.as_object().into_iter().flatten();
        parts.for_each(|(pointer, value)| pod[pointer] = value.clone());
        but(|world| known(&mut world.pods).push(pod))
    };
    let none = || json!({});
    says(&pod("10.40.0.7", none()), "S501", Outcome::Ok, "pods 10.32.0.0/12");
    let elsewhere = pod("10.244.0.7", none());
    says(
        &elsewhere,
        "S501",
        Outcome::Warn,
        "not in the network 10.32.0.0/12 of pods: pod other/p has 10.244.0.7",
    );
    assert!(verdict(&elsewhere, "S501").fix.unwrap().contains(r#"{"podSubnet":"NETWORK"}"#));
    let among = pod("10.96.4.4", none());
    says(
        &among,
        "S501",
        Outcome::Fail,
        "the network 10.96.0.0/12 of Services has a pod in it: pod other/p has 10.96.4.4",
    );
    // Of no network of pods, of a network of its own, of another one by intent, or gone.
    for harmless in [
        json!({"spec": {"hostNetwork": true}}),
        json!({"metadata": {"name": "p", "namespace": "other", "annotations": {"opencontrail.org/network": "{}"}}}),
        json!({"status": {"phase": "Succeeded", "podIP": "10.244.0.7"}}),
    ] {
        says(&pod("10.244.0.7", harmless), "S501", Outcome::Ok, "");
    }
    let mut own = elsewhere.clone();
    known(&mut own.namespaces).push(
        json!({"metadata": {"name": "other", "annotations": {"opencontrail.org/network": "{}"}}}),
    );
    says(&own, "S501", Outcome::Ok, "");
    let mut nested = elsewhere;
    known(&mut nested.managers)[0]["spec"]["nested"] = json!({});
    says(&nested, "S501", Outcome::Ok, "");
    says(
        &but(|world| world.pods = forbidden()),
        "S501",
        Outcome::Uncertain,
        "pods may not be read",
    );
}

#[test]
fn addresses_of_services_are_within_their_network() {
    let service = |addresses: Value| {
        but(|world| {
            world.cluster_addresses = Read::Known(vec![
                json!({"metadata": {"name": "s", "namespace": "other"}, "spec": {"clusterIPs": addresses}}),
            ]);
        })
    };
    for good in [json!(["10.96.3.3", "fd00::3"]), json!(["None"]), json!(null)] {
        says(&service(good), "S501", Outcome::Ok, "");
    }
    let outside = service(json!(["10.8.3.3"]));
    says(
        &outside,
        "S501",
        Outcome::Fail,
        "not in the network 10.96.0.0/12 of Services: Service other/s has 10.8.3.3",
    );
    assert!(verdict(&outside, "S501").fix.unwrap().contains("serviceSubnet"));
    let unread = but(|world| world.cluster_addresses = forbidden());
    says(&unread, "S501", Outcome::Uncertain, "Services may not be read");
}

#[test]
fn addresses_that_lead_out_of_the_networks_are_apart_from_them() {
    let link_local = |ip: &str| {
        let one = json!({"metadata": {"name": "l", "namespace": "t"}, "spec": {"ip": ip}});
        but(|world| world.link_local = Read::Known(vec![one]))
    };
    says(&link_local("169.254.7.7"), "S501", Outcome::Ok, "");
    let among = "the network 10.32.0.0/12 of pods has 10.33.0.1 of LinkLocalService t/l in it";
    says(&link_local("10.33.0.1"), "S501", Outcome::Fail, among);
    let of_node = "node m1 has 192.168.0.1, which is 192.168.0.1 of LinkLocalService t/l";
    says(&link_local("192.168.0.1"), "S501", Outcome::Fail, of_node);
    let cluster = |addresses: &str| {
        let one = json!({"metadata": {"name": "n", "namespace": "t"}, "spec": {"serviceAddresses": [addresses]}});
        but(|world| world.nested_clusters = Read::Known(vec![one]))
    };
    says(&cluster("10.10.10.1-10.10.10.9"), "S501", Outcome::Ok, "");
    says(
        &cluster("10.95.255.250-10.96.0.9"),
        "S501",
        Outcome::Fail,
        "of Services has 10.95.255.250-10.96.0.9 of serviceAddresses of NestedCluster t/n in it",
    );
    let fix = verdict(&cluster("10.95.255.250-10.96.0.9"), "S501").fix.unwrap();
    assert_eq!(fix, "kubectl edit nestedclusters.opensdn.io n -n t");
    let vip = |address: &str| {
        let nested = json!({"vrouter": {"addresses": [address]}});
        with_manager(move |manager| {
            manager["spec"]["services"]["kubemanager"]["spec"]["serviceConfiguration"]["nested"] =
                nested
        })
    };
    says(&vip("10.10.10.5"), "S501", Outcome::Ok, "");
    says(&vip("10.96.7.7"), "S501", Outcome::Fail, "has 10.96.7.7 of nested.vrouter in it");
    let of_agent = but(|world| {
        let map = json!({"data": {"KUBERNESTES_NESTED_VROUTER_VIP": "10.96.7.7"}});
        let environment = Read::Known(map);
        world.nested = Some(super::super::nested::Nested { environment, ..Default::default() });
    });
    says(&of_agent, "S501", Outcome::Fail, "has 10.96.7.7 of KUBERNESTES_NESTED_VROUTER_VIP in it");
    for unread in [
        but(|world| world.link_local = forbidden()),
        but(|world| world.nested_clusters = forbidden()),
    ] {
        says(&unread, "S501", Outcome::Uncertain, "may not be read");
    }
}

#[test]
fn networks_are_those_of_who_made_the_cluster_and_not_guessed() {
    let openshift = |address: &str| {
        let address = address.to_owned();
        but(move |world| {
            world.kubeadm = Read::Absent;
            let networking = json!({"clusterNetwork": [{"cidr": "10.128.0.0/14"}], "serviceNetwork": ["172.30.0.0/16"]});
            world.openshift = Read::Known(json!({"networking": networking}));
            world.service_networks = Read::Absent;
            world.kubernetes = Read::Known(json!({"spec": {"clusterIP": "172.30.0.1"}}));
            known(&mut world.nodes)[0]["status"]["addresses"][0]["address"] = json!(address);
        })
    };
    says(&openshift("10.40.0.1"), "S501", Outcome::Ok, "pods 10.128.0.0/14");
    says(&openshift("10.129.0.1"), "S501", Outcome::Fail, "node m1 has 10.129.0.1");
    for unread in [
        |world: &mut World| world.kubeadm = forbidden(),
        |world: &mut World| {
            world.service_networks = forbidden();
        },
    ] {
        says(&but(unread), "S501", Outcome::Uncertain, "are not known: is forbidden");
    }
}
