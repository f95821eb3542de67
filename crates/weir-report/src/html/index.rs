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
                                @for (heading, is_number) in HEADINGS { th.name[!is_number] { (heading) } }
                            } }
                            tbody {
                                @for run in runs { tr {
                                    td.name {
                                        a href=(run.link) { (run.name) }
                                        @if run.is_live { " " strong { "live" } }
                                    }
                                    td.name { (run.date) }
                                    td.name { (run.host) }
                                    td.name { (run.engines) }
                                    td { (run.cases) }
                                    td.name { (run.remarks) }
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

/// Returns a report with a link to the list of runs. A live one reads itself again every few seconds, and says so.
#[must_use]
pub fn served_page(report: &str, list: &str, is_live: bool) -> String {
    let live =
        format!("; this run changed a moment ago, so the page reads itself again every {LIVE_REFRESH_S} s");
    let link = html! { p.faint { a href=(list) { "All runs" } @if is_live { (live) } } }.into_string();
    let page = report.replacen("<body>", &format!("<body>{link}"), 1);
    let refresh = format!("<head><meta http-equiv=\"refresh\" content=\"{LIVE_REFRESH_S}\">");
    if is_live { page.replacen("<head>", &refresh, 1) } else { page }
}

const LIVE_REFRESH_S: u32 = 5;
/// The headings of the list, and whether their columns are numbers.
const HEADINGS: [(&str, bool); 6] = [
    ("Run", false),
    ("Start (UTC)", false),
    ("Host", false),
    ("Engines", false),
    ("Cases", true),
    ("Remarks", false),
];

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
        let report = "<html><head><title>It</title></head><body><h1>";
        let live = served_page(report, "../", true);
        assert!(
            live.starts_with("<html><head><meta http-equiv=\"refresh\"") && live.contains("a moment ago"),
            "{live}"
        );
        let finished = served_page(report, "../", false);
        assert!(
            finished.contains("<body><p class=\"faint\"><a href=\"../\">All runs</a></p><h1>"),
            "{finished}"
        );
        assert!(!finished.contains("refresh"));
    }
}
