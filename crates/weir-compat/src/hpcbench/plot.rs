//! The plots beside the report: a script for gnuplot, and what a picture of the same needs.

use std::path::Path;

use crate::hpcbench::settings::{Mode, Settings};
use crate::hpcbench::trial::Trial;

/// What a plot shows.
#[derive(Clone, Debug, PartialEq)]
pub struct PlotData {
    /// What stands above it.
    pub title: String,
    /// What the horizontal axis shows.
    pub x_label: &'static str,
    /// What the vertical axis shows.
    pub y_label: &'static str,
    /// Whether the horizontal axis is logarithmic.
    pub logarithmic: bool,
    /// Names and points.
    pub lines: Vec<(&'static str, Vec<(f64, f64)>)>,
}

/// The throughputs of a report.
pub(crate) fn data(mode: Mode, trials: &[Trial], title: &str) -> PlotData {
    let is_growing = mode == Mode::Exponential;
    let line = |figure: fn(&Trial) -> f64| {
        let x = |(index, trial): (usize, &Trial)| {
            if is_growing { trial.write_bytes as f64 } else { (index + 1) as f64 }
        };
        trials.iter().enumerate().map(|(index, trial)| (x((index, trial)), figure(trial))).collect()
    };
    PlotData {
        title: title.to_owned(),
        x_label: if is_growing { "Message size (Bytes)" } else { "Trials" },
        y_label: "Throughput (Mbps)",
        logarithmic: is_growing,
        lines: vec![
            ("Network throughput", line(Trial::network_mbps)),
            ("Local throughput", line(Trial::local_mbps)),
        ],
    }
}

/// A script that draws the report's throughputs into `<output>.ps` and `<output>.eps`.
pub(crate) fn gnuplot(settings: &Settings, output: &Path, title: &str) -> String {
    let name = output.display().to_string();
    let (data, title) = (quoted(&name), quoted(title));
    let (label, scale, x) = match settings.mode {
        Mode::Exponential => ("Message size (Bytes)", "set logscale x\n", 2),
        _ => ("Trials", "", 1),
    };
    // In both kinds of report the throughputs stand right of what the x axis shows.
    let (network, local) = (x + 1, x + 2);
    let plot = format!(
        "plot {data} using {x}:{network} title 'Network throughput' with linespoints, \\\n     \
         {data} using {x}:{local} title 'Local throughput' with linespoints\n"
    );
    format!(
        "# gnuplot script: draws {comment} into PostScript files\n\
         set title {title}\nset xlabel '{label}'\nset ylabel 'Throughput (Mbps)'\n{scale}set grid\nset key left bottom\n\
         set terminal postscript color\nset output {ps}\n{plot}\
         set terminal postscript eps color\nset output {eps}\n{plot}set output\n",
        comment = name.replace('\n', " "),
        ps = quoted(&format!("{name}.ps")),
        eps = quoted(&format!("{name}.eps")),
    )
}

/// A string for gnuplot, in which a quote is doubled.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_the_report() {
        let script = |mode| gnuplot(&Settings::new("mk4", mode), Path::new("it's"), "a <--> b");
        let fixed = script(Mode::Unidirectional);
        assert!(fixed.contains("using 1:2 title") && fixed.contains("using 1:3 title"), "{fixed}");
        assert!(!fixed.contains("logscale"));
        let exponential = script(Mode::Exponential);
        assert!(exponential.contains("using 2:3 title") && exponential.contains("using 2:4 title"));
        assert!(exponential.contains("set logscale x\n"));
        assert!(fixed.contains("plot 'it''s' using") && fixed.contains("set output 'it''s.eps'"), "{fixed}");
    }
}
