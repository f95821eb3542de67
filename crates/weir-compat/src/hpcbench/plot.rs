//! The plots beside the report: a script for gnuplot, and what a picture of the same needs.

use std::path::Path;

use crate::hpcbench::settings::Mode;
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
    let logarithmic = mode == Mode::Exponential;
    let x =
        |index: usize, trial: &Trial| if logarithmic { trial.write_bytes as f64 } else { (index + 1) as f64 };
    let line = |figure: fn(&Trial) -> f64| {
        trials.iter().enumerate().map(|(index, trial)| (x(index, trial), figure(trial))).collect()
    };
    PlotData {
        title: title.to_owned(),
        x_label: if logarithmic { "Message size (Bytes)" } else { "Trials" },
        y_label: "Throughput (Mbps)",
        logarithmic,
        lines: vec![
            ("Network throughput", line(Trial::network_mbps)),
            ("Local throughput", line(Trial::local_mbps)),
        ],
    }
}

/// A script that draws the report's throughputs into `<output>.ps` and `<output>.eps`.
pub(crate) fn gnuplot(output: &Path, plot: &PlotData) -> String {
    let PlotData { x_label, y_label, .. } = plot;
    let name = output.display().to_string();
    let (data, title) = (quoted(&name), quoted(&plot.title));
    let (ps, eps) = (quoted(&format!("{name}.ps")), quoted(&format!("{name}.eps")));
    let comment = name.replace('\n', " ");
    // In both kinds of report the throughputs stand right of what the x axis shows.
    let (scale, x) = if plot.logarithmic { ("set logscale x\n", 2) } else { ("", 1) };
    let line = |(index, (name, _)): (usize, &(&str, _))| {
        format!("{data} using {x}:{} title '{name}' with linespoints", x + 1 + index)
    };
    let lines: Vec<String> = plot.lines.iter().enumerate().map(line).collect();
    let plot = format!("plot {}\n", lines.join(", \\\n     "));
    format!(
        "# gnuplot script: draws {comment} into PostScript files\n\
         set title {title}\nset xlabel '{x_label}'\nset ylabel '{y_label}'\n{scale}set grid\nset key left bottom\n\
         set terminal postscript color\nset output {ps}\n{plot}\
         set terminal postscript eps color\nset output {eps}\n{plot}set output\n"
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
        let script = |mode| gnuplot(Path::new("it's"), &data(mode, &[], "a <--> b"));
        let fixed = script(Mode::Unidirectional);
        assert!(fixed.contains("using 1:2 title") && fixed.contains("using 1:3 title"), "{fixed}");
        assert!(!fixed.contains("logscale"));
        let exponential = script(Mode::Exponential);
        assert!(exponential.contains("using 2:3 title") && exponential.contains("using 2:4 title"));
        assert!(exponential.contains("set logscale x\n"));
        assert!(fixed.contains("plot 'it''s' using") && fixed.contains("set output 'it''s.eps'"), "{fixed}");
    }
}
