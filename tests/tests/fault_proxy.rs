//! The fault proxy that tests of controllers use, before a real API server: what it shows of the past, what it keeps back, how it
//! breaks a request, and that all is as it was when a disturbance has ended.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use futures::{AsyncBufReadExt as _, StreamExt as _};
use http::Request;
use kube::{Client, Config};
use opensdn_testing::fault_proxy::{Fault, FaultProxy, Reach, Thaw, Which};
use opensdn_testing::kubectl::{kubectl, send};
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};
use tokio::sync::mpsc;

const MAPS: &str = "/api/v1/namespaces/tf/configmaps";

/// A control plane, the proxy, and a client that has only the proxy and tries nothing again by itself.
struct World {
    sandbox: Sandbox,
    proxy: FaultProxy,
    client: Client,
}

impl World {
    async fn start() -> Result<Self, Failed> {
        let sandbox = Sandbox::builder().only_api_server().start().await?;
        kubectl(&sandbox, &["create", "namespace", "tf"]).await?.success();
        let proxy = FaultProxy::start(sandbox.client()?, []).await?;
        let path = proxy.kubeconfig(sandbox.data_folder())?;
        let kubeconfig = kube::config::Kubeconfig::read_from(path)?;
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await?;
        config.default_retry = false;
        Ok(Self { sandbox, proxy, client: Client::try_from(config)? })
    }

    /// Writes one, of which that is in it.
    async fn write(&self, name: &str, text: &str) -> Outcome {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "tf"}, "data": {"text": text}});
        send(&self.sandbox, &["apply"], &map).await?.success();
        Ok(())
    }

    async fn delete(&self, name: &str) -> Outcome {
        kubectl(&self.sandbox, &["delete", "-n", "tf", "configmap", name]).await?.success();
        Ok(())
    }

    async fn read(&self, path: &str) -> kube::Result<Value> {
        let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }

    /// What each of the list has, by name, and of which moment it is.
    async fn list(&self) -> Result<(Vec<String>, String), Failed> {
        let list = self.read(&format!("{MAPS}?limit=100&continue=")).await?;
        let items = list["items"].as_array().into_iter().flatten();
        let texts = items.filter(|one| one["data"]["text"].is_string()).map(said).collect();
        Ok((texts, list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()))
    }

    /// The events of a watch from there; it ends with the receiver.
    async fn watch(&self, from: &str) -> Result<mpsc::UnboundedReceiver<String>, Failed> {
        let uri = format!("{MAPS}?watch=true&resourceVersion={from}");
        let lines = self.client.request_stream(Request::get(uri).body(Vec::new())?).await?;
        let (sender, receiver) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut lines = Box::pin(lines.lines());
            while let Some(Ok(line)) = lines.next().await {
                let event: Value = serde_json::from_str(&line).unwrap_or_default();
                let object = &event["object"];
                let what = if object["kind"] == "Status" {
                    object["code"].to_string()
                } else {
                    said(object)
                };
                let type_ = event["type"].as_str().unwrap_or_default();
                if sender.send(format!("{type_} {what}")).is_err() {
                    return;
                }
            }
        });
        Ok(receiver)
    }
}

fn said(map: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{}={}", text(&map["metadata"]["name"]), text(&map["data"]["text"]))
}

/// The next events; nothing, where the watch has ended.
async fn next(events: &mut mpsc::UnboundedReceiver<String>, count: usize) -> Vec<String> {
    let mut said = Vec::new();
    while said.len() < count
        && let Some(event) = events.recv().await
    {
        said.push(event);
    }
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_view_is_that_of_its_moment_until_it_thaws() -> Outcome {
    let world = World::start().await?;
    world.write("a", "1").await?;
    let (_, version) = world.list().await?;
    let mut events = world.watch(&version).await?;
    let then = world.proxy.freeze(&["configmaps"], Reach::Lists).await?;
    world.write("a", "2").await?;
    world.write("b", "1").await?;
    assert_eq!(world.list().await?.0, ["a=1"]);
    let one = world.read(&format!("{MAPS}/a")).await?;
    assert_eq!(said(&one), "a=2", "one object is read as it is");
    world.proxy.freeze_at(then, &["configmaps"], Reach::Everything);
    let one = world.read(&format!("{MAPS}/a")).await?;
    assert_eq!((said(&one), &one["kind"]), ("a=1".to_owned(), &json!("ConfigMap")));
    let absent = world.read(&format!("{MAPS}/b")).await;
    assert!(matches!(&absent, Err(kube::Error::Api(status)) if status.code == 404), "{absent:?}");
    world.proxy.freeze_at(then, &["configmaps"], Reach::Watches);
    assert_eq!(world.list().await?.0, ["a=2", "b=1"], "a list is of the API server itself");
    assert!(events.try_recv().is_err(), "nothing has come");
    world.proxy.thaw(Thaw::Deliver);
    assert_eq!(next(&mut events, 2).await, ["MODIFIED a=2", "ADDED b=1"]);

    world.proxy.freeze(&[], Reach::Lists).await?;
    world.delete("b").await?;
    // A watch that begins while all is frozen shows nothing of what came later.
    let (texts, version) = world.list().await?;
    assert_eq!(texts, ["a=2", "b=1"]);
    let mut second = world.watch(&version).await?;
    world.proxy.thaw(Thaw::Expire);
    for events in [&mut events, &mut second] {
        assert_eq!(next(events, 2).await, ["ERROR 410"], "and it ends");
    }
    assert_eq!(world.list().await?.0, ["a=2"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_that_are_withheld_are_lost_or_come_later_as_one() -> Outcome {
    let world = World::start().await?;
    let (_, version) = world.list().await?;
    let mut events = world.watch(&version).await?;
    let is_a = |map: &Value| map["metadata"]["name"] == "a";
    let withheld = world.proxy.withhold(is_a);
    world.write("a", "1").await?;
    world.write("a", "2").await?;
    world.write("b", "1").await?;
    assert_eq!(next(&mut events, 1).await, ["ADDED b=1"]);
    world.proxy.deliver(withheld);
    assert_eq!(next(&mut events, 1).await, ["ADDED a=2"]);

    let withheld = world.proxy.withhold(is_a);
    world.delete("a").await?;
    world.write("b", "2").await?;
    assert_eq!(next(&mut events, 1).await, ["MODIFIED b=2"]);
    world.proxy.forget(withheld);
    world.write("b", "3").await?;
    assert_eq!(next(&mut events, 1).await, ["MODIFIED b=3"], "that a is gone is not known");
    world.write("a", "4").await?;
    assert_eq!(next(&mut events, 1).await, ["ADDED a=4"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_refused_reset_cut_held_or_gets_no_answer() -> Outcome {
    let world = World::start().await?;
    world.write("a", "1").await?;
    let before = world.proxy.requests().len();
    let (_, version) = world.list().await?;
    assert_eq!(world.proxy.requests().len(), before + 1);

    let refused =
        world.proxy.disturb(Which::reads().of("configmaps").after(1), Fault::RetryAfter(429, 7));
    world.list().await?;
    let uri = format!("{}{MAPS}", server(&world)?);
    let answer = world.client.send(Request::get(uri).body(kube::client::Body::empty())?).await?;
    assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (429, &"7".parse()?));
    assert_eq!(refused.times(), 1);
    world.list().await?;

    for fault in [Fault::Reset, Fault::Cut] {
        let broken = world.proxy.disturb(Which::lists().of("configmaps"), fault);
        let answer = world.list().await;
        assert!(answer.is_err() && broken.times() == 1, "{fault:?}: {answer:?}");
    }
    is_reset(&world).await?;
    for fault in [Fault::LoseRequest, Fault::Silent] {
        let hangs = world.proxy.disturb(Which::lists().of("configmaps"), fault);
        tokio::select! {
            answer = world.list() => return Err(format!("{fault:?}: {answer:?}").into()),
            () = hangs.happened(1) => {}
        }
    }
    let mut silent = {
        let _silent = world.proxy.disturb(Which::watches(), Fault::Silent);
        world.watch(&version).await?
    };
    world.proxy.disturb(Which::watches(), Fault::Expire);
    assert_eq!(next(&mut world.watch(&version).await?, 2).await, ["ERROR 410"]);
    world.proxy.disturb(Which::watches(), Fault::Answer(410));
    let refused = world.watch(&version).await.map(drop).unwrap_err().to_string();
    assert!(refused.contains("410") || refused.contains("a fault of the test"), "{refused}");
    let mut whole = world.watch(&version).await?;
    world.write("a", "2").await?;
    assert_eq!(next(&mut whole, 1).await, ["MODIFIED a=2"]);
    assert!(silent.try_recv().is_err());

    let held = world.proxy.disturb(Which::writes(), Fault::Hold);
    let path = format!("{MAPS}/a");
    let delete = Request::delete(&path).body(b"{}".to_vec())?;
    let mut deleted = std::pin::pin!(world.client.request::<Value>(delete));
    tokio::select! {
        answer = &mut deleted => return Err(format!("{answer:?}").into()),
        () = held.happened(1) => {}
    }
    assert_eq!(said(&world.read(&path).await?), "a=2");
    held.end();
    deleted.await?;
    assert!(world.read(&path).await.is_err());
    assert_eq!(world.proxy.writes().len(), 1);
    Ok(())
}

fn server(world: &World) -> Result<String, Failed> {
    let path = world.proxy.kubeconfig(world.sandbox.data_folder())?;
    let kubeconfig: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    Ok(kubeconfig["clusters"][0]["cluster"]["server"].as_str().unwrap_or_default().to_owned())
}

/// As the kernel sees it.
async fn is_reset(world: &World) -> Outcome {
    world.proxy.disturb(Which::lists(), Fault::Reset);
    let mut stream = TcpStream::connect(server(world)?.trim_start_matches("http://"))?;
    write!(stream, "GET {MAPS} HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let read = tokio::task::spawn_blocking(move || stream.read(&mut [0; 100])).await?;
    assert_eq!(read.map_err(|error| error.kind()), Err(ErrorKind::ConnectionReset));
    Ok(())
}
