//! The codes of what verification finds, and what is behind each. Those of a plan are `opensdn-nested`'s. A code never
//! gets another meaning.

macro_rules! codes {
    ($($name:ident = $code:literal, $title:literal, $why:literal, $remedy:literal;)+) => {
        /// What a finding of verification is known by.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Code {
            $(#[doc = $title] $name,)+
        }

        impl Code {
            /// Every code, in order.
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)+];

            /// As it is written: `OSDN3080`.
            pub(crate) fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)+ }
            }

            /// What is wrong, in one line.
            pub(crate) fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)+ }
            }

            /// What happens because of it.
            pub(crate) fn why(self) -> &'static str {
                match self { $(Self::$name => $why,)+ }
            }

            /// What to do.
            pub(crate) fn remedy(self) -> &'static str {
                match self { $(Self::$name => $remedy,)+ }
            }
        }
    };
}

codes! {
    OtherCni = "OSDN3067", "another CNI configuration is taken before 10-contrail.conf",
        "The container runtime takes the first configuration of its folder by name, and CRI-O the one that it is set \
         to: pods get the network of the other CNI. Only Multus, which calls the plugin itself, may be before it.",
        "remove the other configuration from the node, or have it sort after 10-contrail.conf";
    Unreachable = "OSDN3080", "a service is not reached from a node",
        "The CNI plugin of each node needs the agent on port 9091, and kube-manager needs the other services: where it \
         can run a failure is an error, on other nodes a warning.",
        "is the service up, and does nested plan say that all is in place? With fabric SNAT the nodes' network needs \
         fabric_snat and the cloud its port pools; look at security groups and firewalls of the fabric";
    OtherService = "OSDN3081", "something else than the expected service answers",
        "The address and port lead to another program, or to the right one that is broken: kube-manager or the CNI \
         plugin fails on its answers.",
        "correct the address or port of the service, or restart it: look at what listens there";
    NotReady = "OSDN3082", "kube-manager or the CNI agent is not ready",
        "Without kube-manager no pod gets an interface, without the CNI agent no node a plugin. kube-manager ends at \
         once where Keystone refuses it or does not answer, and starts again and again; for the Config API, the API \
         server and ZooKeeper it waits without limit, for the database five minutes before it continues.",
        "look at its pods and their logs: kubectl describe and kubectl logs";
    CniFileMissing = "OSDN3083", "a node has no CNI configuration file",
        "The CNI agent writes 10-contrail.conf when it starts. Without it the node stays NotReady, or its pods get \
         another network.",
        "restart the pod of the CNI agent on the node, and read its log";
    PodWithoutNetwork = "OSDN3084", "a pod gets no address of the cluster's networks of pods",
        "kube-manager gives a pod its interface by the interface of its node in the cloud, and leaves out pods whose \
         node it does not find there. A pod with an address of elsewhere is on another network.",
        "kubectl opensdn nested plan names nodes that are not in the network (OSDN3032, OSDN3075); read the log of \
         kube-manager; if the cluster has other networks than those of the image, give --pod-subnets";
    PodWithoutApi = "OSDN3085", "a pod does not reach the Service kubernetes",
        "Pods reach the API server by a load balancer of kube-manager, whose members are the machines behind the \
         Endpoints of the Service: they have to be in the network of the nodes, too, and the policy \
         CLUSTER-nested-underlay-np lets them in.",
        "are the nodes of the control plane in the network of the nodes, and does their security group let in the \
         networks of pods?";
    PodWithoutPeer = "OSDN3086", "a pod does not reach a pod on another node",
        "Pods of one namespace reach each other unless a NetworkPolicy says otherwise: the vrouters of the two compute \
         nodes have no tunnel, or an interface of a node lets no other addresses through.",
        "look at the tunnels between the compute nodes, at MTUs, and at the interfaces of the pods in the cloud";
    PodWithoutConfig = "OSDN3087", "a pod does not reach the Config API",
        "By a link-local service every pod of the cloud reaches it, so that a failure means that the way from pods \
         through the vrouter is broken. With fabric SNAT the nodes' network reaches the fabric and that of pods need \
         not: then it is only a warning.",
        "with link-local services look at the flows of the pod in the vrouter agent; with fabric SNAT nothing has to \
         be done unless pods are to reach the fabric, for which kube-manager has KUBERNETES_IP_FABRIC_SNAT";
    RowMissing = "OSDN3090", "a link-local service is not in the cloud",
        "Agents answer nothing on its address and port.",
        "kubectl opensdn nested apply";
    RowElsewhere = "OSDN3091", "a link-local service of ours leads elsewhere",
        "Its address or port in the fabric is another than the plan's: another program or a person has changed it, or \
         the plan has other services now.",
        "kubectl opensdn nested apply, after asking who changed it";
    RowShadowed = "OSDN3092", "an earlier link-local service with the same address and port wins",
        "Agents keep the first row of an address and port; ours is dead.",
        "have its owner remove the other row, or kubectl opensdn nested apply --take-over";
    RowRenamed = "OSDN3093", "a link-local service has another name than a new one would get",
        "It was there before, or its name was changed: it works, and DNS knows it by that name.",
        "nothing has to be done";
    RowOrphaned = "OSDN3094", "a link-local service of our record is not wanted any more",
        "It stays open to the whole cloud, so that workloads that were started with it find it until they are replaced.",
        "when the workloads use what replaces it: kubectl opensdn nested apply --prune";
    RowTaken = "OSDN3095", "address and port of a link-local service are another owner's",
        "Agents lead where the other row says.",
        "choose another service address by --node-address or --vrouter-address, or kubectl opensdn nested apply \
         --take-over after asking its owner";
    ObjectMissing = "OSDN3096", "the Config API has no global-vrouter-config",
        "All link-local services of the cloud are in it, and it is the Config API that makes it, when it starts.",
        "restart the Config API, and restore the link-local services from a backup";
    Unauthorized = "OSDN3097", "the Config API or Keystone refuses the login",
        "Nothing can be read or written with it. Where aaa_mode is cloud-admin the user needs a role of the name admin.",
        "correct user, password, project and domains in the login's Secret or the variables OS_...";
    ApiUnreachable = "OSDN3098", "the Config API or Keystone does not answer",
        "What is in the cloud stays as it is, and what others change is not put right meanwhile.",
        "is it up, and reached from where this runs? The operator asks again by itself";
    GivenUp = "OSDN3099", "another writer has undone it too often",
        "The operator has put it right five times within an hour, and leaves it for the rest of that hour.",
        "find the other writer (an open page of the Web UI, provision_linklocal.py, another program); a change of the \
         spec is tried at once";
}
