//! A page that lists runs, for a server of reports.

use maud::{DOCTYPE, PreEscaped, html};

use super::STYLE;

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedRun {
    /// The address of its report, relative to the list.
    pub link: String,
    /// Its name.
    pub name: String,
    /// Its start.
    pub date: String,
    /// Its hosts.
    pub host: String,
    /// Its engines.
    pub engines: String,
    /// Cases that can be read.
    pub cases: u64,
    /// Whether its file was written a moment ago.
    pub is_live: bool,
    /// What else is to be known of it.
    pub remarks: String,
}

/// Returns a page that lists runs, and reads itself again every few seconds while one of them is live.
#[must_use]
pub fn index_page(title: &str, runs: &[ListedRun]) -> String {
    let is_live = runs.iter().any(|run| run.is_live);
    let page = html! {
        (DOCTYPE)
        html lang="en-GB" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                @if is_live { meta http-equiv="refresh" content={ (LIVE_REFRESH_S) }; }
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header { h1 { (title) } }
                main {
                    @if runs.is_empty() { p { "There are no runs yet: measure with weir bench." } }
                    @else {
                        div.scroll { table {
                            thead { tr {
                                @for heading in HEADINGS { th { (heading) } }
                            } }
                            tbody {
                                @for run in runs { tr {
                                    td { a href=(run.link) { (run.name) } @if run.is_live { " " strong { "live" } } }
                                    td { (run.date) }
                                    td { (run.host) }
                                    td { (run.engines) }
                                    td { (run.cases) }
                                    td { (run.remarks) }
                                } }
                            }
                        } }
                    }
                }
                footer {
                    p.faint { "Read-only. Figures for programs: " a href="metrics" { "metrics" } " (OpenMetrics)." }
                }
            }
        }
    };
    super::without_controls(page.into_string())
}

/// Returns a report that reads itself again every few seconds.
#[must_use]
pub fn live_page(report: &str) -> String {
    let refresh = format!("<head><meta http-equiv=\"refresh\" content=\"{LIVE_REFRESH_S}\">");
    report.replacen("<head>", &refresh, 1)
}

const LIVE_REFRESH_S: u32 = 5;
const HEADINGS: [&str; 6] = ["Run", "Start (UTC)", "Host", "Engines", "Cases", "Remarks"];

#[cfg(test)]
mod tests {
    use super::*;

    fn run(is_live: bool) -> ListedRun {
        ListedRun {
            link: "run/3f2a91c0".into(),
            name: "<script>alert(1)</script>".into(),
            date: "2026-11-24 10:00:00".into(),
            host: "a&b\u{1b}".into(),
            engines: "weir".into(),
            cases: 7,
            is_live,
            remarks: String::new(),
        }
    }

    #[test]
    fn names_are_escaped_and_only_live_pages_read_themselves_again() {
        let page = index_page("Runs", &[run(false)]);
        assert!(page.contains("&lt;script&gt;") && page.contains("a&amp;b\u{FFFD}"), "{page}");
        assert!(page.contains("href=\"run/3f2a91c0\"") && !page.contains("refresh"), "{page}");
        assert!(index_page("Runs", &[run(false), run(true)]).contains("http-equiv=\"refresh\""));
        assert!(index_page("Runs", &[]).contains("no runs yet"));
        assert!(live_page("<html><head><title>").starts_with("<html><head><meta http-equiv"));
    }
}
