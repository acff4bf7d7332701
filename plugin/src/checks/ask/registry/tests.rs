//! Registries that have an image, that have it not, that want a login, and that do not answer.

use super::*;
use crate::fake_api_server::{FakeApiServer, Reply};

async fn ask(plain: &[String], images: &[String]) -> BTreeMap<String, AtRegistry> {
    let http = Http::new(None, plain).unwrap();
    let registries = Registries::new(http, Credentials::default());
    by_host(&registries, images.iter().cloned().collect(), Instant::now() + ALL).await
}

fn host(server: &FakeApiServer) -> String {
    server.url().trim_start_matches("http://").to_owned()
}

#[tokio::test]
async fn an_image_is_there_absent_or_not_known_and_nothing_is_pulled() {
    let server = FakeApiServer::start(|request, _| match request {
        "HEAD /v2/opensdn/config/manifests/R24.1" => Reply::Text(200, ""),
        "HEAD /v2/opensdn/secret/manifests/R24.1" => Reply::Text(401, ""),
        "HEAD /v2/opensdn/broken/manifests/R24.1" => Reply::Text(500, ""),
        _ => Reply::Text(404, ""),
    });
    let host = host(&server);
    let image = |name: &str| format!("{host}/opensdn/{name}:R24.1");
    let wrong = "https://registry.example.com/a".to_owned();
    let images = [image("config"), image("gone"), image("secret"), image("broken"), wrong.clone()];
    let said = ask(std::slice::from_ref(&host), &images).await;
    assert_eq!(said[&image("config")], AtRegistry::Present);
    assert_eq!(said[&image("gone")], AtRegistry::Absent);
    let why = |image: &str| match &said[image] {
        AtRegistry::Unknown(why) => why.clone(),
        other => panic!("{image}: {other:?}"),
    };
    assert!(why(&image("secret")).contains("wants a login"));
    assert!(why(&image("broken")).contains("500"));
    assert!(why(&wrong).contains("is no image"));
    assert!(server.seen().iter().all(|request| request.starts_with("HEAD ")));
}

#[tokio::test]
async fn a_registry_that_does_not_answer_is_asked_once() {
    let server = FakeApiServer::start(|_, _| Reply::Cut);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let hosts = [closed.to_string(), host(&server)];
    let images: Vec<String> = hosts
        .iter()
        .flat_map(|host| ["a", "b", "c"].map(|name| format!("{host}/{name}:1")))
        .collect();
    let said = ask(&hosts, &images).await;
    assert_eq!(said.len(), images.len());
    assert_eq!(server.seen().len(), 1, "{:?}", server.seen());
    for (image, answer) in &said {
        assert!(matches!(answer, AtRegistry::Unknown(_)), "{image}: {answer:?}");
    }
    let of_closed: Vec<&AtRegistry> =
        said.iter().filter(|(image, _)| image.starts_with(&hosts[0])).map(|(_, one)| one).collect();
    assert!(matches!(of_closed[0], AtRegistry::Unknown(why) if why.contains("cannot be reached")));
}
