//! Redis: the cache that analytics and the web UI reach on their own node, and stunnel before it for
//! those of other nodes. Nothing is kept on disk.

use opensdn_crds::component::{self, Component};
use opensdn_crds::redis::RedisConfiguration;
use serde_json::json;

use super::shared::port;
use crate::component::{
    Check, ComponentKind, Container, Description, File, Given, Mount, SettingsError, Template,
    Volume,
};

/// The kind Redis.
pub(super) struct Redis;

const ROW: &Component = component::row("Redis");
const DEFAULT_PORT: u16 = ROW.port_of_field("redisPort");

impl ComponentKind for Redis {
    fn facts(&self) -> &'static Component {
        ROW
    }

    fn templates(&self) -> &'static [Template] {
        &[
            template!("redis/run-redis.sh"),
            template!("redis/run-stunnel.sh"),
            template!("redis/stunnel.ini"),
        ]
    }

    fn describe(&self, given: &Given<'_>) -> Result<Description, SettingsError> {
        let settings: RedisConfiguration = given.settings()?;
        let port = port(settings.redis_port, DEFAULT_PORT);
        let ping = format!("redis-cli -h 127.0.0.1 -p {port} ping");
        Ok(Description {
            containers: vec![
                Container {
                    name: "redis",
                    mounts: vec![Mount::at("redis-data", "/var/lib/redis")],
                    check: Check::Command(ping),
                    requests: ("50m", "64Mi"),
                    ..Container::default()
                },
                Container {
                    name: "stunnel",
                    check: Check::Port(port),
                    requests: ("10m", "16Mi"),
                    ..Container::default()
                },
            ],
            files: vec![
                File::shared("run-redis.sh", "redis/run-redis.sh"),
                File::shared("run-stunnel.sh", "redis/run-stunnel.sh"),
                File::of_pod("stunnel", "redis/stunnel.ini"),
            ],
            values: json!({"port": port}),
            volumes: vec![
                Volume::folder("redis-data", "/var/lib/contrail/redis"),
                Volume::folder("contrail-logs", "/var/log/contrail/redis"),
            ],
            ..Description::default()
        })
    }
}
