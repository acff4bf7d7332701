//! Programs stopped and killed: those of nodes, of pods, and etcd.

use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};

use super::{Fault, FaultError};
use crate::sandbox::lab::cgroups;
use crate::sandbox::lab::node::Running;
use crate::sandbox::lab::{Lab, LabError};
use crate::sandbox::program::Program;
use crate::signal as os;

/// A program that each node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Daemon {
    /// It reports the node to the API server, and starts and ends pods.
    Kubelet,
    /// It keeps the containers. They live on without it.
    Containerd,
    /// It turns addresses of services into those of pods. What it has set up stays.
    KubeProxy,
}

/// What happens to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// It is paused, its connections open: SIGSTOP. Undone by SIGCONT.
    Stop,
    /// It is gone at once: SIGKILL. Undone by another start; a pod's is kubelet's to start.
    Kill,
}

impl Daemon {
    pub(in crate::sandbox::lab) fn of(self, running: &Running) -> &Program {
        match self {
            Self::Kubelet => &running.kubelet,
            Self::Containerd => &running.containerd,
            Self::KubeProxy => &running.kube_proxy,
        }
    }
}

impl Lab {
    /// Stops or kills a program of a node.
    ///
    /// # Errors
    /// When there is no such node, or it does not run.
    pub fn signal_daemon(
        &self,
        node: &str,
        daemon: Daemon,
        signal: Signal,
    ) -> Result<Fault, FaultError> {
        let running = self.node(node)?.running()?;
        let what = format!("{signal:?} of {daemon:?} on {node}");
        match signal {
            Signal::Stop => daemon.of(&running).signal(os::Signal::STOP),
            Signal::Kill => daemon.of(&running).kill(),
        }
        Ok(Fault::new(what, move || {
            let program = daemon.of(&running);
            match signal {
                Signal::Stop => program.resume(),
                // A node that was switched off meanwhile stays off.
                Signal::Kill if running.machine.program().id().is_none() => {}
                Signal::Kill => program.start().map_err(LabError::from)?,
            }
            Ok(())
        }))
    }

    /// Stops or kills every process of a pod's container. kubelet starts a killed one again.
    ///
    /// # Errors
    /// When the container has no process.
    pub async fn signal_container(
        &self,
        client: &Client,
        namespace: &str,
        pod: &str,
        container: &str,
        signal: Signal,
    ) -> Result<Fault, FaultError> {
        let processes = self.processes_of(client, namespace, pod, container).await?;
        if processes.is_empty() {
            return Err(FaultError::NoProcess {
                namespace: namespace.into(),
                pod: pod.into(),
                container: container.into(),
            });
        }
        let what = format!("{signal:?} of {container} in {namespace}/{pod}");
        match signal {
            Signal::Stop => {
                send(&processes, os::Signal::STOP);
                Ok(Fault::new(what, move || {
                    send(&processes, os::Signal::CONT);
                    Ok(())
                }))
            }
            Signal::Kill => {
                send(&processes, os::Signal::KILL);
                Ok(Fault::new(what, || Ok(())))
            }
        }
    }

    /// The processes of a pod's container, by their ids on this machine.
    ///
    /// # Errors
    /// When the API server does not know the pod.
    pub async fn processes_of(
        &self,
        client: &Client,
        namespace: &str,
        pod: &str,
        container: &str,
    ) -> Result<Vec<u32>, FaultError> {
        let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
        let object = pods.get(pod).await.map_err(|source| LabError::ApiServer {
            what: format!("read pod {namespace}/{pod}"),
            source: Box::new(source),
        })?;
        let statuses = object.status.and_then(|status| status.container_statuses);
        let status =
            statuses.unwrap_or_default().into_iter().find(|status| status.name == container);
        let id = status.and_then(|status| status.container_id).unwrap_or_default();
        let Some((_, id)) = id.split_once("://") else { return Ok(Vec::new()) };
        let groups = cgroups::groups(&crate::sandbox::lab::group_prefix(self.id()));
        let mut processes: Vec<u32> =
            groups.iter().flat_map(|group| cgroups::processes_below(group, id)).collect();
        processes.sort_unstable();
        // Once for each controller.
        processes.dedup();
        Ok(processes)
    }
}

fn send(processes: &[u32], signal: os::Signal) {
    for process in processes {
        // It may have ended meanwhile.
        let _ = os::send(signal, *process);
    }
}

/// Stops a program of the control plane until the fault is dropped.
pub(in crate::sandbox) fn pause(what: &str, program: &Program) -> Result<Fault, FaultError> {
    let process = program.id().ok_or_else(|| FaultError::NotRunning(what.to_owned()))?;
    send(&[process], os::Signal::STOP);
    Ok(Fault::new(format!("pause of {what}"), move || {
        send(&[process], os::Signal::CONT);
        Ok(())
    }))
}
