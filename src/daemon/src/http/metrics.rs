//! `GET /metrics`: figures in the format of Prometheus.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Response, StatusCode};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use yard_client::Ask;
use yard_client::views::MetricsView;

use super::error::ApiError;
use super::routes::{Api, owner};

/// What Prometheus reads.
const FORMAT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) async fn text(State(shared): Api, request: Request) -> Result<Response<Body>, ApiError> {
    let caller = owner(&request)?;
    let document = shared.ask(caller.actor(), Ask::Metrics).await?;
    let failed = |error: String| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "error", error);
    let view: MetricsView =
        serde_json::from_str(document.get()).map_err(|error| failed(error.to_string()))?;
    let text = written(&view).map_err(|error| failed(error.to_string()))?;
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(FORMAT));
    Ok(response)
}

fn written(view: &MetricsView) -> Result<String, std::fmt::Error> {
    let mut registry = Registry::with_prefix("ym");
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let tasks = &view.tasks;
    let gauges = [
        ("beads", "Beads that are known", count(view.beads)),
        ("scheduled", "Requests that wait, for whatever", count(view.scheduled)),
        ("ready", "Requests that could start if there were room", count(view.ready)),
        ("running", "Workers and actions under way", count(view.running)),
        ("max_workers", "Workers that may run, -1 without a limit", view.max_workers.map_or(-1, number)),
        ("paused", "Whether dispatch is paused", i64::from(view.paused)),
        ("alerts", "Alerts that nobody has seen", count(view.alerts)),
        ("tasks_queued", "Tasks that wait", number(tasks.queue.total_queued)),
        ("tasks_inflight", "Tasks under way", number(tasks.queue.total_inflight)),
        ("tasks_max_queue", "Tasks that may wait", number(tasks.config.max_queue_size)),
        ("tasks_max_inflight", "Tasks that may run", number(tasks.config.max_inflight)),
    ];
    for (name, help, value) in gauges {
        registry.register(name, help, ConstGauge::<i64>::new(value));
    }
    let metrics = &tasks.metrics;
    let counters = [
        ("events", "Events in the log", view.seq),
        ("tasks_submitted", "Tasks taken in", metrics.tasks_submitted),
        ("tasks_completed", "Tasks done", metrics.tasks_completed),
        ("tasks_failed", "Tasks failed", metrics.tasks_failed),
        ("tasks_cancelled", "Tasks called off", metrics.tasks_cancelled),
        ("tasks_rejected", "Tasks turned away", metrics.tasks_rejected),
        ("tasks_expired", "Tasks not started before their deadline", metrics.tasks_expired),
        ("tasks_dispatched", "Attempts begun", metrics.dispatch_count),
        ("webhooks_delivered", "Webhooks that arrived", metrics.webhooks_delivered),
        ("webhooks_abandoned", "Webhooks that were given up", metrics.webhooks_abandoned),
    ];
    for (name, help, value) in counters {
        registry.register(name, help, ConstCounter::<u64>::new(value));
    }
    let waited = ConstGauge::<f64>::new(metrics.avg_dispatch_latency_ms / 1000.0);
    registry.register("task_wait_seconds_mean", "How long tasks waited on the average", waited);
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}
