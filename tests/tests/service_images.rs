//! The images of real services start and answer: `make test-images`. Each runs as its image says,
//! in a network of its own.

use std::error::Error;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use opensdn_tests::image::{Container, Image};

type Outcome = Result<(), Box<dyn Error>>;

const BUILD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/images/build.sh");
const PATIENCE: Duration = Duration::from_secs(100);

fn start(service: &str) -> Result<Container, Box<dyn Error>> {
    let built = Command::new(BUILD).arg(service).output()?;
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let archive = PathBuf::from(String::from_utf8(built.stdout)?.trim());
    let image = Image::open(&archive)?;
    assert_eq!(image.configuration.user, "1000:1000", "not root");
    Ok(Container::start(&image, &[])?)
}

/// Asks until the answer contains that, and returns all of it.
fn answers(
    container: &mut Container,
    wanted: &str,
    ask: impl Fn(&Container) -> Result<Output, opensdn_tests::image::Error>,
) -> String {
    let end = Instant::now() + PATIENCE;
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

/// A question to a port, for which the image has no program.
fn ask_port(
    container: &Container,
    port: u16,
    text: &str,
) -> Result<Output, opensdn_tests::image::Error> {
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
    Ok(())
}

#[test]
fn zookeeper_answers_and_is_in_the_pinned_version() -> Outcome {
    let mut zookeeper = start("zookeeper")?;
    answers(&mut zookeeper, "imok", |zookeeper| ask_port(zookeeper, 2181, "ruok"));
    let said = answers(&mut zookeeper, "Mode: standalone", |it| ask_port(it, 2181, "srvr"));
    assert!(said.contains("Zookeeper version: 3.9"), "{said}");
    Ok(())
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
    Ok(())
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
    Ok(())
}
