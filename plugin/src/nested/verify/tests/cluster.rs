//! Services as nodes reach them, files of nodes, and the workloads.

use super::*;

const REFUSED: &str = "Connection refused (os error 111)";

fn refused() -> Reached {
    Reached::No(REFUSED.to_owned())
}

#[test]
fn the_agent_is_an_error_on_every_node_and_the_rest_only_where_kube_manager_can_run() {
    let worker = |port: u16, title: &str| {
        let mut cluster = Cluster::good(Connectivity::FabricSnat);
        cluster.becomes("w1", port, refused());
        cluster.result(Part::Services, title)
    };
    says(&worker(9091, "vrouter"), "OSDN3080", Outcome::Fail, "1/2 nodes");
    let database = worker(9041, "config-database");
    says(&database, "OSDN3080", Outcome::Warn, "kube-manager does not run here");
    assert!(database.nodes.iter().any(|one| one.name == "w1" && one.message.contains(REFUSED)));

    let mut cluster = Cluster::good(Connectivity::FabricSnat);
    cluster.becomes("m1", 9041, refused());
    says(&cluster.result(Part::Services, "config-database"), "OSDN3080", Outcome::Fail, "m1");
    // Where no kube-manager says so, each node may have to run it.
    cluster.becomes("m1", 9041, Reached::Connected);
    cluster.becomes("w1", 9041, refused());
    cluster.workloads.deployments = Read::Known(vec![]);
    says(&cluster.result(Part::Services, "config-database"), "OSDN3080", Outcome::Fail, "w1");
}

#[test]
fn something_else_than_the_expected_service_is_an_error_of_its_own() {
    let with = |port: u16, title: &str, reached: Reached| {
        let mut cluster = Cluster::good(Connectivity::LinkLocal);
        cluster.becomes("w1", port, reached);
        cluster.result(Part::Services, title)
    };
    let proxy = || reply(404, &[], "<html>404 Not Found</html>");
    for (port, title) in [(9091, "vrouter"), (8082, "config 10"), (5000, "keystone")] {
        says(&with(port, title, proxy()), "OSDN3081", Outcome::Fail, "status 404");
    }
    let silent = Reached::Silent("invalid HTTP version parsed".to_owned());
    says(&with(8082, "config 10", silent), "OSDN3081", Outcome::Fail, "no HTTP");
    // A link-local service that leads to another one of this cloud.
    let keystone = reply(200, &["version"], "{");
    says(&with(8082, "config 10", keystone), "OSDN3081", Outcome::Fail, "status 200");
}

#[test]
fn a_service_with_tls_is_as_good_and_that_its_certificate_was_not_checked_is_said() {
    let mut cluster = Cluster::good(Connectivity::FabricSnat);
    for node in NODES {
        let Reached::Answered(mut reply) = reply(200, &["links"], "{") else { panic!() };
        reply.by = By::UnverifiedTls;
        cluster.becomes(node, 8082, Reached::Answered(reply));
    }
    says(&cluster.result(Part::Services, "config 192"), "OSDN3080", Outcome::Ok, "not checked");
}

#[test]
fn a_service_of_which_an_older_image_says_nothing_is_uncertain() {
    let mut cluster = Cluster::good(Connectivity::FabricSnat);
    for answer in cluster.of_nodes.values_mut() {
        answer.as_mut().unwrap().findings.services.clear();
    }
    let found = cluster.result(Part::Services, "vrouter");
    says(&found, "OSDN3080", Outcome::Uncertain, "--probe-image");
}

#[test]
fn files_of_nodes_are_there_missing_or_not_known() {
    let mut cluster = Cluster::good(Connectivity::FabricSnat);
    let cni = |cluster: &mut Cluster, seen: Seen<Cni>| {
        cluster.of_nodes.get_mut("w1").unwrap().as_mut().unwrap().findings.cni = seen;
    };
    cni(&mut cluster, Seen::Is(Cni { folder: "/etc/cni/net.d".to_owned(), ..Cni::default() }));
    let missing = cluster.result(Part::NodeFiles, "CNI configuration");
    says(&missing, "OSDN3083", Outcome::Fail, "w1: /etc/cni/net.d has no 10-contrail.conf");
    let calico = CniFile {
        file: "10-calico.conflist".to_owned(),
        plugins: vec!["calico".to_owned()],
        ..CniFile::default()
    };
    cni(&mut cluster, Seen::Is(Cni { files: vec![calico], ..Cni::default() }));
    says(
        &cluster.result(Part::NodeFiles, "other"),
        "OSDN3067",
        Outcome::Fail,
        "10-calico.conflist",
    );
    cni(&mut cluster, Seen::Unknown("it is hidden".to_owned()));
    says(&cluster.result(Part::NodeFiles, "other"), "OSDN3067", Outcome::Uncertain, "hidden");
}

#[test]
fn a_workload_that_is_not_ready_says_why_and_one_that_is_not_there_how_it_is_made() {
    let mut cluster = Cluster::good(Connectivity::FabricSnat);
    let Read::Known(deployments) = &mut cluster.workloads.deployments else { panic!() };
    deployments[0]["status"]["readyReplicas"] = json!(0);
    let said = "keystoneauth1: The request you have made requires authentication";
    cluster.workloads.pods = Read::Known(vec![json!({
        "metadata": {"name": "p", "labels": {"app": "opensdn-kube-manager"}},
        "status": {"containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"message": said}}}]}})]);
    let found = cluster.result(Part::Workloads, "kube-manager");
    says(&found, "OSDN3082", Outcome::Fail, said);
    assert!(found.fix.unwrap().contains("app=opensdn-kube-manager"));

    cluster.workloads.deployments = Read::Known(vec![]);
    let none = cluster.result(Part::Workloads, "kube-manager");
    says(&none, "OSDN3082", Outcome::Fail, "--target-namespace");
    cluster.workloads.deployments = Read::Unknown("is forbidden".to_owned());
    let unread = cluster.result(Part::Workloads, "kube-manager");
    says(&unread, "OSDN3082", Outcome::Uncertain, "is forbidden");
}

#[test]
fn upstreams_daemon_sets_are_found_under_old_and_new_names_and_two_kube_managers_are_too_many() {
    for prefix in ["opensdn-", "contrail-"] {
        let mut cluster = Cluster::good(Connectivity::FabricSnat);
        let name = format!("{prefix}kube-manager");
        let set = |count: i64| {
            let status = json!({"status": {"desiredNumberScheduled": count, "numberReady": count}});
            Read::Known(vec![
                workload(status.clone(), &name, &name, json!({})),
                workload(status, "cni", &format!("{prefix}kubernetes-cni-init"), json!({})),
            ])
        };
        cluster.workloads.deployments = Read::Known(vec![]);
        cluster.workloads.daemon_sets = set(1);
        for title in ["kube-manager", "CNI agent"] {
            says(&cluster.result(Part::Workloads, title), "OSDN3082", Outcome::Ok, "1 of 1");
        }
        cluster.workloads.daemon_sets = set(2);
        says(&cluster.result(Part::Workloads, "kube-manager"), "OSDN3082", Outcome::Warn, "VLAN");
        cluster.workloads.daemon_sets = set(0);
        says(
            &cluster.result(Part::Workloads, "kube-manager"),
            "OSDN3082",
            Outcome::Fail,
            "no node",
        );
    }
}
