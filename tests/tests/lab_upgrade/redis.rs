//! Redis. Each member is one by itself and keeps nothing on disk: what was written is lost with its process, as it is meant
//! to be. What counts is that one of them takes writes at any time, and that each does in the end.

use opensdn_testing::lab_operator::REDIS_IMAGE;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::lab_quorum::world::{Service, World};

pub(super) const REDIS: Service = Service {
    image: "redis",
    word: "redis",
    kind: "redis.tf.tungsten.io",
    field: ("redis", true),
    name: "redis1",
    data: "/var/lib/contrail/redis",
    client: "redis_client.py",
    beside: &[],
};
/// What loads it names it so.
pub(super) const IMAGE: &str = REDIS_IMAGE;

/// The proxy before it has the same image.
pub(super) fn settings(image: &str) -> Value {
    json!({"redisPort": 6390, "containers": [{"name": "stunnel", "image": image}]})
}

/// What the client trusts.
pub(super) async fn give(world: &World) -> Outcome {
    world.give("ca.crt", "configmap", "csr-signer-ca", "ca-bundle.crt").await
}

/// Each answers by TLS, and one of them has the last that was acknowledged, or a later one.
pub(super) fn has_what_was_acknowledged_last(world: &mut World, nodes: &[&str]) -> Outcome {
    world.client.end();
    let hosts: Vec<String> =
        nodes.iter().map(|node| world.address_of(node)).collect::<Result<_, Failed>>()?;
    let said = world.client.read(world.lab()?, &hosts)?;
    let newest = hosts.iter().filter_map(|host| said[host].as_u64()).max();
    let acknowledged = world.client.acknowledged();
    assert!(newest >= acknowledged.last().copied(), "{said}");
    eprintln!("{} writes to Redis were acknowledged", acknowledged.len());
    Ok(())
}
