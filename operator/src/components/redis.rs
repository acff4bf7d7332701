//! Redis: the cache that analytics and the web UI reach on their own node, and stunnel before it for
//! those of other nodes. Nothing is kept on disk.

use opensdn_crds::component::{self, Component as Facts};
use opensdn_crds::redis::RedisConfiguration;
use serde_json::{Value, json};

use crate::component::{
    Check, Component, Container, Description, File, HostPath, Quorum, Scope, SettingsError,
    Template,
};
use crate::peers::Peers;

/// The kind Redis.
pub(super) struct Redis;

const DEFAULT_PORT: u16 = 6389;

impl Component for Redis {
    fn facts(&self) -> &'static Facts {
        const { component::row("Redis") }
    }

    fn templates(&self) -> &'static [Template] {
        &[
            ("redis/run-redis.sh", include_str!("../../templates/redis/run-redis.sh.j2")),
            ("redis/run-stunnel.sh", include_str!("../../templates/redis/run-stunnel.sh.j2")),
            ("redis/stunnel.ini", include_str!("../../templates/redis/stunnel.ini.j2")),
        ]
    }

    fn describe(&self, settings: &Value, _: &Peers) -> Result<Description, SettingsError> {
        let settings: RedisConfiguration = serde_json::from_value(settings.clone())?;
        let port = settings.redis_port.and_then(|port| u16::try_from(port).ok());
        let port = port.unwrap_or(DEFAULT_PORT);
        let ping = format!("redis-cli -h 127.0.0.1 -p {port} ping");
        Ok(Description {
            containers: vec![
                Container {
                    name: "redis",
                    mounts: vec![("redis-data", "/var/lib/redis")],
                    check: Check::Command(ping),
                    readiness: None,
                    requests: ("50m", "64Mi"),
                    capabilities: &[],
                },
                Container {
                    name: "stunnel",
                    mounts: vec![],
                    check: Check::Port(port),
                    readiness: None,
                    requests: ("10m", "16Mi"),
                    capabilities: &[],
                },
            ],
            files: vec![
                File { name: "run-redis.sh", template: "redis/run-redis.sh", scope: Scope::Shared },
                File {
                    name: "run-stunnel.sh",
                    template: "redis/run-stunnel.sh",
                    scope: Scope::Shared,
                },
                File { name: "stunnel", template: "redis/stunnel.ini", scope: Scope::Pod },
            ],
            values: json!({"port": port}),
            host_paths: vec![
                HostPath { volume: "redis-data", path: "/var/lib/contrail/redis" },
                HostPath { volume: "contrail-logs", path: "/var/log/contrail/redis" },
            ],
            quorum: Quorum::Majority,
            ensemble: None,
        })
    }
}
