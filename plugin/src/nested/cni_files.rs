//! Which configuration of the network of pods a node of a nested cluster has, by the files of its folder; pure. Both
//! `check --nested` and `nested verify` say it.

use opensdn_node_probe::{Cni, CniFile, Seen};

use crate::checks::probed::Said;
use crate::checks::report::Outcome;

/// What the CNI agent writes.
pub(crate) const FILE: &str = "10-contrail.conf";

fn unseen(cni: &Seen<Cni>) -> Result<&Cni, Said> {
    match cni {
        Seen::Is(cni) => Ok(cni),
        Seen::Unknown(why) => {
            Err((Outcome::Uncertain, format!("the files of networks are not known: {why}")))
        }
    }
}

/// Whether the file is there.
pub(crate) fn is_there(cni: &Seen<Cni>) -> Said {
    let cni = match unseen(cni) {
        Ok(cni) => cni,
        Err(said) => return said,
    };
    match cni.files.iter().find(|one| one.file == FILE) {
        Some(CniFile { error: Some(error), .. }) => {
            (Outcome::Fail, format!("{}/{FILE} cannot be read: {error}", cni.folder))
        }
        Some(_) => (Outcome::Ok, format!("{}/{FILE}", cni.folder)),
        None => (Outcome::Fail, format!("{} has no {FILE}", cni.folder)),
    }
}

/// Whether another configuration is taken instead, whether the file is there yet or not.
pub(crate) fn is_first(cni: &Seen<Cni>) -> Said {
    let cni = match unseen(cni) {
        Ok(cni) => cni,
        Err(said) => return said,
    };
    if let Some(network) = &cni.default_network {
        let set_to = cni.files.iter().find(|one| one.network == *network);
        return match set_to {
            Some(one) if one.file == FILE || is_multus(one) => {
                (Outcome::Ok, format!("CRI-O is set to {network} of {}", one.file))
            }
            _ => (Outcome::Fail, format!("CRI-O is set to {network} by cni_default_network")),
        };
    }
    let mut before = cni.files.iter().take_while(|one| one.file.as_str() < FILE);
    match before.find(|one| !is_multus(one)) {
        Some(one) => {
            let what = one.plugins.first().map_or("nothing that can be read", String::as_str);
            (Outcome::Fail, format!("{} ({what}) sorts before {FILE}, and is taken", one.file))
        }
        None => (Outcome::Ok, format!("none sorts before {FILE}")),
    }
}

/// The plugin knows it as the one that calls it.
fn is_multus(file: &CniFile) -> bool {
    file.plugins.first().is_some_and(|plugin| plugin.starts_with("multus"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, plugin: &str) -> CniFile {
        CniFile {
            file: name.to_owned(),
            network: plugin.to_owned(),
            plugins: vec![plugin.to_owned()],
            error: None,
        }
    }

    fn of(files: &[(&str, &str)]) -> Seen<Cni> {
        let files = files.iter().map(|(name, plugin)| file(name, plugin)).collect();
        Seen::Is(Cni { folder: "/etc/cni/net.d".to_owned(), files, ..Cni::default() })
    }

    #[test]
    fn calico_sorts_before_and_flannel_after_and_multus_is_no_other_network() {
        let ours = (FILE, "contrail-k8s-cni");
        let calico = is_first(&of(&[("10-calico.conflist", "calico"), ours]));
        assert_eq!(calico.0, Outcome::Fail, "{}", calico.1);
        assert!(calico.1.contains("10-calico.conflist (calico)"), "{}", calico.1);
        assert_eq!(is_first(&of(&[ours, ("10-flannel.conflist", "flannel")])).0, Outcome::Ok);
        assert_eq!(is_first(&of(&[("00-multus.conf", "multus"), ours])).0, Outcome::Ok);
        let behind =
            of(&[("00-multus.conf", "multus"), ("05-cilium.conflist", "cilium-cni"), ours]);
        assert_eq!(is_first(&behind).0, Outcome::Fail);
        assert_eq!(is_first(&Seen::Unknown("hidden".to_owned())).0, Outcome::Uncertain);
    }

    #[test]
    fn what_cri_o_is_set_to_is_taken_whatever_sorts_first() {
        let with = |network: &str| {
            let Seen::Is(mut cni) = of(&[("00-x.conf", "x"), (FILE, "contrail-k8s-cni")]) else {
                panic!("it is seen")
            };
            cni.default_network = Some(network.to_owned());
            is_first(&Seen::Is(cni)).0
        };
        assert_eq!((with("contrail-k8s-cni"), with("x")), (Outcome::Ok, Outcome::Fail));
    }

    #[test]
    fn the_file_is_there_missing_broken_or_not_seen() {
        assert_eq!(is_there(&of(&[(FILE, "contrail-k8s-cni")])).0, Outcome::Ok);
        let missing = is_there(&of(&[]));
        assert_eq!(missing, (Outcome::Fail, format!("/etc/cni/net.d has no {FILE}")));
        let broken = CniFile { error: Some("EOF".to_owned()), ..file(FILE, "") };
        let broken = Seen::Is(Cni { files: vec![broken], ..Cni::default() });
        assert_eq!(is_there(&broken).0, Outcome::Fail);
        assert_eq!(is_there(&Seen::Unknown("hidden".to_owned())).0, Outcome::Uncertain);
    }
}
