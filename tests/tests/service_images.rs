//! The images of real services and of the stand-in start and answer: `make test-images`. Each runs
//! as its image says, in a network of its own.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use opensdn_testing::image::{Container, Image};
use opensdn_testing::{Failed, Outcome};
use tempfile::TempDir;

const BUILD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/images/build.sh");
const TIMEOUT: Duration = Duration::from_secs(100);

/// As a node pulls it.
const MOST_PACKED: u64 = 30_000_000;
/// A collector knows all four services.
const COLLECTOR: &str = "[DEFAULT]\nhostname=it\nanalytics_data_ttl=48\nhttp_server_port=8089\n\
    syslog_port=1514\nsflow_port=6343\nipfix_port=4739\ncassandra_server_list=127.0.0.1:9042\n\
    zookeeper_server_list=127.0.0.1:2181\n[COLLECTOR]\nport=8086\nprotobuf_port=3333\n\
    [STRUCTURED_SYSLOG_COLLECTOR]\nport=3514\n[API_SERVER]\napi_server_list=127.0.0.1:8082\n\
    [REDIS]\nserver=127.0.0.1\nport=6379\n[CONFIGDB]\nconfig_db_server_list=127.0.0.1:9042\n\
    rabbitmq_server_list=127.0.0.1:5672\nrabbitmq_user=it\nrabbitmq_password=it\n\
    rabbitmq_vhost=it\n";

fn archive(service: &str) -> Result<PathBuf, Failed> {
    let built = Command::new(BUILD).arg(service).output()?;
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Ok(PathBuf::from(String::from_utf8(built.stdout)?.trim()))
}

fn start(service: &str) -> Result<Container, Failed> {
    let image = Image::open(&archive(service)?)?;
    assert_eq!(image.configuration.user, "1000:1000", "not root");
    Ok(Container::start(&image, &[])?)
}

/// Asks until the answer contains that, and returns all of it.
fn answers(
    container: &mut Container,
    wanted: &str,
    ask: impl Fn(&Container) -> Result<Output, opensdn_testing::image::Error>,
) -> String {
    let end = Instant::now() + TIMEOUT;
    loop {
        let said = match ask(container) {
            Ok(output) => String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into(),
            Err(error) => error.to_string(),
        };
        if said.contains(wanted) {
            return said;
        }
        let ended = container.has_ended();
        assert!(!ended && Instant::now() < end, "{said}\n{}", container.log());
        thread::sleep(Duration::from_millis(200));
    }
}

/// The stand-in beside a service finds that it is what it should be.
fn stand_in_finds(service: &Container, name: &str) -> Outcome {
    let folder = TempDir::new()?;
    Image::open(&archive("stand-in")?)?.unpack(folder.path())?;
    let configuration = folder.path().join("collector.conf");
    fs::write(&configuration, COLLECTOR)?;
    let program = folder.path().join("opensdn-stand-in");
    let script = format!(
        "timeout 20 {} collector --config {} | grep --max-count 1 '{name} 127.0.0.1:.* is up'",
        program.display(),
        configuration.display()
    );
    let found = service.in_its_network(&["bash", "-c", &script])?;
    let said = String::from_utf8_lossy(&found.stdout);
    assert!(said.contains("is up"), "{name}: {said}{}", String::from_utf8_lossy(&found.stderr));
    Ok(())
}

#[test]
fn stand_in_is_small_and_answers_in_introspect_without_any_rights() -> Outcome {
    let archive = archive("stand-in")?;
    let packed = fs::metadata(&archive)?.len();
    assert!(packed < MOST_PACKED, "{packed} bytes");
    let image = Image::open(&archive)?;
    assert_eq!(image.configuration.user, "1000:1000", "not root");
    assert_eq!(image.configuration.entrypoint, ["/opensdn-stand-in"]);
    let arguments = ["collector", "--config", "/collector.conf"];
    let files = [("collector.conf", COLLECTOR)];
    let mut collector = Container::start_with(&image, &arguments, &files)?;
    let question = r"GET /Snh_SandeshUVECacheReq?x=NodeStatus HTTP/1.0\r\n\r\n";
    let said = answers(&mut collector, "<state>", |it| ask_port(it, 8089, question));
    assert!(said.contains("<module_id>contrail-collector</module_id>"), "{said}");
    assert!(said.contains("<state>Non-Functional</state>"), "{said}");
    let wrong = COLLECTOR.replace("port=8086", "port={{ .Port }}");
    let refused = Container::start_with(&image, &arguments, &[("collector.conf", &wrong)])?;
    let (code, said) = refused.finish()?;
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.starts_with("collector: /collector.conf: [COLLECTOR] port: a placeholder"),
        "{said}"
    );
    Ok(())
}

/// A question to a port, for which the image has no program.
fn ask_port(
    container: &Container,
    port: u16,
    text: &str,
) -> Result<Output, opensdn_testing::image::Error> {
    let script =
        format!("exec 3<>/dev/tcp/127.0.0.1/{port}; printf '{text}' >&3; timeout 5 cat <&3");
    container.in_its_network(&["bash", "-c", &script])
}

#[test]
fn redis_answers_and_keeps_what_it_is_given() -> Outcome {
    let mut redis = start("redis")?;
    answers(&mut redis, "PONG", |redis| redis.exec(&["redis-cli", "ping"]));
    answers(&mut redis, "OK", |redis| redis.exec(&["redis-cli", "set", "color", "green"]));
    answers(&mut redis, "green", |redis| redis.exec(&["redis-cli", "get", "color"]));
    stand_in_finds(&redis, "Redis")
}

#[test]
fn zookeeper_answers_and_is_in_the_pinned_version() -> Outcome {
    let mut zookeeper = start("zookeeper")?;
    answers(&mut zookeeper, "imok", |zookeeper| ask_port(zookeeper, 2181, "ruok"));
    let said = answers(&mut zookeeper, "Mode: standalone", |it| ask_port(it, 2181, "srvr"));
    assert!(said.contains("Zookeeper version: 3.9"), "{said}");
    stand_in_finds(&zookeeper, "Zookeeper")
}

#[test]
fn rabbitmq_is_up_and_takes_connections() -> Outcome {
    let mut rabbitmq = start("rabbitmq")?;
    answers(&mut rabbitmq, "Ping succeeded", |it| it.exec(&["rabbitmq-diagnostics", "ping"]));
    answers(&mut rabbitmq, "RabbitMQ is running", |it| {
        it.exec(&["rabbitmq-diagnostics", "check_port_connectivity"]).and_then(|_| {
            it.exec(&[
                "rabbitmqctl",
                "eval",
                "io:format(\"RabbitMQ is running ~p\", [rabbit:is_running()]).",
            ])
        })
    });
    // A wrong greeting is answered with the protocol that it speaks.
    answers(&mut rabbitmq, "AMQP", |it| ask_port(it, 5672, "HELLO123"));
    stand_in_finds(&rabbitmq, "RabbitMQ")
}

#[test]
fn cassandra_is_up_and_takes_cql() -> Outcome {
    let mut cassandra = start("cassandra")?;
    // `UN` is up and normal.
    let said = answers(&mut cassandra, "UN  127.0.0.1", |it| it.exec(&["nodetool", "status"]));
    assert!(said.contains("Datacenter: datacenter1"), "{said}");
    // OPTIONS of protocol version 4 are answered with SUPPORTED, which names the CQL version.
    let options = r"\x04\x00\x00\x00\x05\x00\x00\x00\x00";
    answers(&mut cassandra, "CQL_VERSION", |it| ask_port(it, 9042, options));
    stand_in_finds(&cassandra, "Cassandra")
}
