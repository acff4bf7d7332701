//! Transcripts of commands that ask a cluster in which nothing is wrong: what they write when they succeed. How long
//! something took is written as `[..]`; ages are those of the cluster, which is made for the test.

use crate::healthy_cluster::healthy_cluster;
use crate::transcripts::cases;

#[test]
fn commands_of_a_healthy_cluster_write_and_end_as_in_their_transcripts() {
    let server = healthy_cluster();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("config");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: prod\ncontexts: [{{name: prod, context: {{cluster: prod, user: admin}}}}]\n\
         clusters: [{{name: prod, cluster: {{server: '{}'}}}}]\nusers: [{{name: admin, user: {{}}}}]\n",
        server.url()
    );
    std::fs::write(&kubeconfig, text).unwrap();
    let cases = cases();
    cases.env("KUBECONFIG", kubeconfig.display().to_string());
    // How often pods are looked at is by the clock.
    cases.env("KUBECTL_OPENSDN_PROGRESS", "none");
    cases.insert_var("[SERVER]", server.url()).unwrap();
    cases.case("tests/healthy/*.trycmd");
    cases.run();
}
