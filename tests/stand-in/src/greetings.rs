//! Checks that a server is what it should be by the first bytes of its protocol. Nothing logs
//! in, so no password is ever sent. Deliberately not here: Kafka, XMPP and Sandesh, of which
//! it is only checked that they take a connection.

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::component::Service;

/// Why a server is not what it should be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("greet it")]
    Stream(#[from] std::io::Error),
    #[error("it does not speak its protocol")]
    Protocol,
}

/// What is sent, and how the answer begins.
struct Greeting {
    send: &'static [u8],
    length: usize,
    is_answer: fn(&[u8]) -> bool,
}

/// Sends the first words and reads the answer to them.
pub(crate) async fn greet(
    service: Service,
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
) -> Result<(), Error> {
    let Some(greeting) = greeting(service) else { return Ok(()) };
    stream.write_all(greeting.send).await?;
    stream.flush().await?;
    let mut answer = vec![0; greeting.length];
    stream.read_exact(&mut answer).await?;
    if (greeting.is_answer)(&answer) { Ok(()) } else { Err(Error::Protocol) }
}

fn greeting(service: Service) -> Option<Greeting> {
    match service {
        // OPTIONS of protocol version 4; SUPPORTED has the number 6.
        Service::Cassandra => Some(Greeting {
            send: b"\x04\x00\x00\x00\x05\x00\x00\x00\x00",
            length: 5,
            is_answer: |answer| matches!(answer, [0x84, _, _, _, 6]),
        }),
        // A method's frame on channel 0: Connection.Start.
        Service::RabbitMq => Some(Greeting {
            send: b"AMQP\x00\x00\x09\x01",
            length: 3,
            is_answer: |answer| answer == [1, 0, 0],
        }),
        Service::Zookeeper => {
            Some(Greeting { send: b"ruok", length: 4, is_answer: |answer| answer == b"imok" })
        }
        // Redis says when a client has to log in first.
        Service::Redis => Some(Greeting {
            send: b"PING\r\n",
            length: 5,
            is_answer: |answer| answer == b"+PONG" || answer == b"-NOAU",
        }),
        Service::ConfigApi
        | Service::AnalyticsApi
        | Service::Collector
        | Service::Kafka
        | Service::ControlNode => None,
    }
}
