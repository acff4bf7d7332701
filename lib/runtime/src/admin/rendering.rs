//! The text of the metrics, for everybody who reaches the port and so also for strangers: it is rendered
//! one at a time, a few times a second at most, and once for all who wait for it together. No one is
//! given a text from before he asked. Deliberately not here: HTTP.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use prometheus_client::registry::Registry;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::metrics;

/// How long at least from one rendering to the next.
const INTERVAL: Duration = Duration::from_millis(100);

/// Renders the metrics of a registry; cheap to clone.
#[derive(Clone)]
pub(super) struct Rendering {
    registry: Arc<Registry>,
    last: Arc<Mutex<Option<Rendered>>>,
}

struct Rendered {
    began: Instant,
    text: Bytes,
}

impl Rendering {
    pub(super) fn new(registry: Arc<Registry>) -> Self {
        Self { registry, last: Arc::default() }
    }

    /// The metrics as they are now or, for who had to wait, as they were a moment later.
    ///
    /// # Errors
    /// A metric refuses to be written.
    pub(super) async fn text(&self) -> Result<Bytes, fmt::Error> {
        let asked = Instant::now();
        let mut last = self.last.lock().await;
        if let Some(Rendered { began, text }) = &*last {
            if *began >= asked {
                return Ok(text.clone());
            }
            sleep_until(*began + INTERVAL).await;
        }
        let began = Instant::now();
        let text = Bytes::from(metrics::encode(&self.registry)?);
        *last = Some(Rendered { began, text: text.clone() });
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;
    use prometheus_client::collector::Collector;
    use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
    use prometheus_client::metrics::MetricType;
    use prometheus_client::metrics::gauge::ConstGauge;

    use super::*;

    /// A metric that says how often it was rendered.
    #[derive(Clone, Debug, Default)]
    struct Renderings(Arc<AtomicUsize>);

    impl Collector for Renderings {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
            let count = self.0.fetch_add(1, Ordering::SeqCst) + 1;
            let metric = ConstGauge::new(i64::try_from(count).unwrap_or_default());
            let encoder = encoder.encode_descriptor("renderings", "x", None, MetricType::Gauge)?;
            metric.encode(encoder)
        }
    }

    fn rendering() -> (Rendering, Renderings) {
        let (mut registry, renderings) = (Registry::default(), Renderings::default());
        registry.register_collector(Box::new(renderings.clone()));
        (Rendering::new(Arc::new(registry)), renderings)
    }

    #[tokio::test]
    async fn who_asks_at_the_same_time_shares_one_rendering() {
        let (rendering, renderings) = rendering();
        let texts = join_all((0..200).map(|_| rendering.text())).await;
        assert!(texts.iter().all(|text| text.as_ref().is_ok_and(|text| !text.is_empty())));
        // The first one, and one for all who asked while it was under way.
        let count = renderings.0.load(Ordering::SeqCst);
        assert!(count <= 2, "it was rendered {count} times");
    }

    #[tokio::test]
    async fn who_asks_again_gets_a_new_text_but_not_at_once() {
        let (rendering, _) = rendering();
        let began = Instant::now();
        for number in 1..=3 {
            let text = rendering.text().await.unwrap();
            let text = String::from_utf8_lossy(&text);
            assert!(text.contains(&format!("renderings {number}\n")), "{text}");
        }
        assert!(began.elapsed() >= 2 * INTERVAL, "{:?}", began.elapsed());
    }
}
