//! The pages.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use weir_history::{Filter, History, PointHistory, RunEntry, RunState};
use weir_report::{
    ListedRun, Metric, NamedRun, ReportOptions, html_report, index_page, open_metrics, served_page,
};
use weir_results::{Run, Test, is_being_written};

use super::http::{Request, Response};
use crate::published::named_in;
use crate::text::counted;

/// The runs of a folder as pages.
pub(super) struct Site {
    folder: PathBuf,
    token: Option<String>,
    /// One request at a time uses the index.
    reading: Mutex<()>,
}

/// The most bytes of a results file that is shown.
const BYTES_MAX: u64 = 256 << 20;
const COOKIE: &str = "weir_token";

impl Site {
    pub(super) fn new(folder: PathBuf, token: Option<String>) -> Self {
        Self { folder, token, reading: Mutex::new(()) }
    }

    /// Answers a request.
    pub(super) fn respond(&self, request: &Request) -> Response {
        if !matches!(request.method.as_str(), "GET" | "HEAD") {
            let refused = Response::plain("405 Method Not Allowed", "read-only");
            return Response { headers: "Allow: GET, HEAD\r\n".into(), ..refused };
        }
        if let Some(refused) = self.refusal(request) {
            return refused;
        }
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let history = match History::open(&self.folder) {
            Ok(history) => history,
            Err(error) => return Response::plain("503 Service Unavailable", &error.to_string()),
        };
        let answered = match request.path.as_str() {
            "/" => self.index(&history),
            "/metrics" => metrics(&history),
            path => match path.strip_prefix("/run/") {
                Some(id) => self.report(&history, id),
                None => Ok(None),
            },
        };
        match answered {
            Ok(Some(response)) => response,
            Ok(None) => Response::plain("404 Not Found", "there is no such page; / lists the runs"),
            Err(error) => Response::plain("500 Internal Server Error", &error.to_string()),
        }
    }

    /// Refuses those who do not know the token, or, without one, pages of other sites.
    fn refusal(&self, request: &Request) -> Option<Response> {
        let Some(token) = &self.token else {
            // A name that resolves to loopback would let a page of another site read this one.
            let is_own = request.host.as_deref().is_some_and(is_loopback);
            let text = "the Host of a request is localhost or a loopback address";
            return (!is_own).then(|| Response::plain("403 Forbidden", text));
        };
        if request.query.split('&').any(|it| is_same(it.strip_prefix("token="), token)) {
            // The token does not stay in the address.
            let moved = Response::plain("303 See Other", "see /");
            let cookie = format!("Set-Cookie: {COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/\r\n");
            return Some(Response { headers: format!("Location: /\r\n{cookie}"), ..moved });
        }
        let bearer = request.authorization.as_deref().and_then(|it| it.strip_prefix("Bearer "));
        let cookies = request.cookie.as_deref().unwrap_or_default().split(';');
        let mut cookies = cookies.filter_map(|it| it.trim().strip_prefix(COOKIE)?.strip_prefix('='));
        let is_known = is_same(bearer, token) || cookies.any(|it| is_same(Some(it), token));
        (!is_known).then(|| {
            let refused = Response::plain("401 Unauthorized", "open /?token=TOKEN");
            Response { headers: "WWW-Authenticate: Bearer\r\n".into(), ..refused }
        })
    }

    fn index(&self, history: &History) -> Answer {
        let mut runs = history.runs(&Filter::default())?;
        runs.retain(|run| !matches!(run.state, RunState::Unreadable(_)));
        // The latest first.
        let listed: Vec<ListedRun> = runs.iter().rev().map(|run| self.listed(run)).collect();
        Ok(Some(Response::html(index_page("Weir: runs", &listed))))
    }

    fn listed(&self, run: &RunEntry) -> ListedRun {
        let remarks = match (&run.state, run.not_measured) {
            (RunState::Damaged(lines), _) => format!("{} left out", counted(*lines, "damaged line")),
            (_, 0) => String::new(),
            (_, count) => format!("{} without figures", counted(count, "case")),
        };
        ListedRun {
            link: format!("run/{}", run.id),
            name: run.name.clone(),
            date: run.date.replace('T', " ").replace('Z', ""),
            host: run.host.clone(),
            engines: run.engines.clone(),
            cases: run.cases,
            is_live: is_being_written(self.folder.join(&run.path)),
            remarks,
        }
    }

    fn report(&self, history: &History, id: &str) -> Answer {
        let runs = history.runs(&Filter::default())?;
        let Some(run) = runs.iter().find(|run| run.id == id) else { return Ok(None) };
        let path = self.folder.join(&run.path);
        if path.metadata().is_ok_and(|it| it.len() > BYTES_MAX) {
            let text = "the results file is too large for a page: use `weir report`";
            return Ok(Some(Response::plain("500 Internal Server Error", text)));
        }
        let salvaged = Run::salvage(&path)?;
        let options = ReportOptions { costs: true, ..ReportOptions::default() };
        let published = named_in(&salvaged.run.environment.command);
        let named = NamedRun { name: &run.name, run: &salvaged.run, published: &published };
        let page = html_report(&[named], &options);
        Ok(Some(Response::html(served_page(&page, "/", is_being_written(&path)))))
    }
}

/// A page, or none of that name.
type Answer = Result<Option<Response>, anyhow::Error>;

fn metrics(history: &History) -> Answer {
    let points = history.points(&Filter::default())?;
    let metrics: Vec<Metric> = points.iter().filter_map(metric).collect();
    let runs = history.runs(&Filter::default())?.len();
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let response = Response::html(open_metrics(runs, &metrics));
    Ok(Some(Response { content_type, ..response }))
}

fn metric(point: &PointHistory) -> Option<Metric> {
    let last = point.runs.last()?;
    let key = &point.key;
    let test: Test = key.test.parse().ok()?;
    let started = humantime::parse_rfc3339(&last.run.date).ok();
    Some(Metric {
        labels: vec![
            ("engine", key.engine.clone()),
            ("test", test.to_string()),
            ("size_bytes", key.size_bytes.to_string()),
            ("conditions", key.conditions.clone()),
            ("host", key.host.clone()),
        ],
        test,
        median: last.median()?,
        interval: last.interval(),
        lost: last.lost,
        repeats: last.values.len(),
        start_s: started.and_then(|it| Some(it.duration_since(UNIX_EPOCH).ok()?.as_secs_f64())),
    })
}

/// Whether a Host header names this host by loopback: `localhost:7480`, `127.0.0.1`, `[::1]:7480`.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
}

/// Compares in a time that does not depend on where the two differ.
fn is_same(found: Option<&str>, token: &str) -> bool {
    let Some(found) = found.filter(|it| it.len() == token.len()) else { return false };
    found.bytes().zip(token.bytes()).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tempfile::TempDir;
    use weir_results::{Case, Environment, LatencySummary, Reliability, ThroughputSummary, WorkloadFigures};

    use super::*;

    fn folder() -> TempDir {
        let folder = TempDir::new().unwrap();
        let mut run = Run::new(Environment {
            date: "2026-11-24T10:00:00Z".into(),
            hostname: Some("<b>lab7".into()),
            ..Environment::default()
        });
        let latency = LatencySummary { count: 10, p50: 20.0, ..LatencySummary::default() };
        run.cases = vec![
            Case::new("weir", Test::Latency, Reliability::Reliable, 32)
                .with(|it| it.figures.latency_us = Some(latency)),
        ];
        std::fs::create_dir(folder.path().join("one")).unwrap();
        let path = folder.path().join("one/results.jsonl");
        std::fs::write(&path, run.to_lines()).unwrap();
        folder
    }

    fn request(target: &str) -> Request {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Request {
            method: "GET".into(),
            path: path.into(),
            query: query.into(),
            host: Some("localhost:7480".into()),
            authorization: None,
            cookie: None,
        }
    }

    #[test]
    fn runs_are_listed_and_shown_and_figures_are_metrics() {
        let folder = folder();
        let site = Site::new(folder.path().to_owned(), None);
        let index = site.respond(&request("/")).body;
        assert!(!index.contains("live"), "{index}");
        let measured =
            std::fs::File::options().append(true).open(folder.path().join("one/results.jsonl")).unwrap();
        measured.try_lock().unwrap();
        let index = site.respond(&request("/")).body;
        let link = index.split("href=\"run/").nth(1).unwrap().split('"').next().unwrap().to_owned();
        assert!(
            index.contains("&lt;b&gt;lab7") && index.contains("live") && !index.contains("<b>lab7"),
            "{index}"
        );
        let report = site.respond(&request(&format!("/run/{link}")));
        assert!(
            report.status == "200 OK" && report.body.contains("http-equiv=\"refresh\""),
            "{}",
            report.status
        );
        let metrics = site.respond(&request("/metrics"));
        assert!(metrics.content_type.starts_with("application/openmetrics-text"));
        let line = "weir_latency_median_seconds{engine=\"weir\",test=\"latency\",size_bytes=\"32\",\
                    conditions=\"reliable, block\",host=\"<b>lab7\"} 0.00002";
        assert!(metrics.body.lines().any(|it| it == line), "{}", metrics.body);
        for missing in ["/run/ffffffff", "/run/../one", "/one/results.jsonl", "/etc/passwd"] {
            assert_eq!(site.respond(&request(missing)).status, "404 Not Found", "{missing}");
        }
    }

    #[test]
    fn each_metric_of_an_answer_has_labels_of_its_own() {
        let folder = folder();
        let path = folder.path().join("one/results.jsonl");
        let mut run = Run::load(&path).unwrap();
        run.cases.push(Case::new("weir", Test::Throughput, Reliability::Reliable, 32).with(|it| {
            it.figures.throughput = Some(ThroughputSummary { samples_per_s: 1e6, ..Default::default() });
        }));
        run.cases.push(Case::new("weir", Test::Workload, Reliability::Reliable, 32).with(|it| {
            it.figures.workload = Some(WorkloadFigures { cpu_percent: 12.5, ..Default::default() });
        }));
        std::fs::write(&path, run.to_lines()).unwrap();
        let body = Site::new(folder.path().to_owned(), None).respond(&request("/metrics")).body;
        let of_workload =
            |line: &&str| line.starts_with("weir_workload_cpu_percent{") && line.ends_with(" 12.5");
        assert_eq!(body.lines().filter(of_workload).count(), 1, "{body}");
        let samples = || body.lines().filter(|line| !line.starts_with('#'));
        let series: BTreeSet<&str> = samples().filter_map(|line| Some(line.rsplit_once(' ')?.0)).collect();
        assert_eq!(series.len(), samples().count(), "{body}");
    }

    #[test]
    fn without_a_token_only_loopback_names_are_answered_and_nothing_can_be_changed() {
        let folder = folder();
        let site = Site::new(folder.path().to_owned(), None);
        let status = |host: Option<&str>| {
            site.respond(&Request { host: host.map(str::to_owned), ..request("/") }).status
        };
        for host in ["localhost", "127.0.0.1:7480", "[::1]:7480", "127.9.9.9"] {
            assert_eq!(status(Some(host)), "200 OK", "{host}");
        }
        for host in ["evil.example:7480", "10.0.0.1", "localhost.evil.example", ""] {
            assert_eq!(status(Some(host)), "403 Forbidden", "{host}");
        }
        assert_eq!(status(None), "403 Forbidden");
        for method in ["POST", "DELETE", "PUT", "OPTIONS"] {
            let refused = site.respond(&Request { method: method.into(), ..request("/") });
            assert_eq!(refused.status, "405 Method Not Allowed");
        }
    }

    #[test]
    fn with_a_token_nothing_is_shown_to_those_who_do_not_know_it() {
        let (folder, token) = (folder(), "0123456789abcdef");
        let site = Site::new(folder.path().to_owned(), Some(token.into()));
        let of = |change: &dyn Fn(&mut Request)| {
            let mut request = Request { host: Some("lab7:7480".into()), ..request("/") };
            change(&mut request);
            site.respond(&request)
        };
        assert_eq!(of(&|_| {}).status, "401 Unauthorized");
        assert!(!of(&|_| {}).body.contains("lab7"));
        for wrong in ["", "0123456789abcdee", "0123456789abcdef0", "0123456789ABCDEF"] {
            assert_eq!(of(&|it| it.query = format!("token={wrong}")).status, "401 Unauthorized");
            assert_eq!(
                of(&|it| it.authorization = Some(format!("Bearer {wrong}"))).status,
                "401 Unauthorized"
            );
            assert_eq!(of(&|it| it.cookie = Some(format!("{COOKIE}={wrong}"))).status, "401 Unauthorized");
        }
        assert_eq!(of(&|it| it.authorization = Some(format!("Bearer {token}"))).status, "200 OK");
        assert_eq!(of(&|it| it.cookie = Some(format!("a=b; {COOKIE}={token}"))).status, "200 OK");
        let moved = of(&|it| it.query = format!("a=b&token={token}"));
        assert!(moved.status.starts_with("303") && moved.headers.contains("HttpOnly"), "{moved:?}");
    }
}
