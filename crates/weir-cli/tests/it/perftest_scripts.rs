//! The loops of RTI's published scripts between two network namespaces with their addresses.

use std::path::Path;
use std::process::{Child, Command};

use tempfile::TempDir;

/// Two namespaces and a cable of MTU 9000 between them; gone with this value.
struct Cable {
    names: [String; 2],
}

impl Cable {
    /// `None`, said on standard error, where this process may not do that.
    fn lay() -> Option<Self> {
        let names = [1, 2].map(|end| format!("perftest-{}-{end}", std::process::id()));
        let cable = Self { names };
        let [one, other] = &cable.names;
        let script = format!(
            "set -e\nip netns add {one}\nip netns add {other}\n\
             ip -n {one} link add p0 type veth peer name p0 netns {other}\n\
             ip -n {one} address add 172.16.0.1/24 dev p0\nip -n {other} address add 172.16.0.2/24 dev p0\n\
             for end in {one} {other}; do ip -n $end link set p0 mtu 9000 up; ip -n $end link set lo up; done"
        );
        let laid = Command::new("sh").args(["-c", &script]).output().is_ok_and(|laid| laid.status.success());
        if !laid {
            use std::io::Write as _;
            let _ = writeln!(std::io::stderr(), "skipped: network namespaces need root and `ip`");
            return None;
        }
        Some(cable)
    }

    /// Runs a script at one end as RTI's are run: with the executable and the folder for its output.
    fn start(&self, end: usize, script: &str, output: &Path) -> Child {
        Command::new("ip")
            .args(["netns", "exec", &self.names[end], "bash", "-c", script, "script"])
            .arg(env!("CARGO_BIN_EXE_perftest"))
            .arg(output)
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap()
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

/// RTI's publisher, reliable and unkeyed, then keyed; only -exec, the sizes and the pauses are shorter.
const PUBLISHER: &str = r#"
export executable=$1
export output_folder=$2
export exec_time=1
export nic=172.16.0.1
export pub_string="-pub \
        -transport UDPv4 \
        -nic $nic \
        -noPrint \
        -noOutputHeaders \
        -exec $exec_time \
        -noXML\
        -latencyTest"
for DATALEN in 32 8192 100000; do
    export command="taskset -c 0 \
    $executable -datalen $DATALEN $pub_string"
    $command >> $output_folder/pub.csv;
done
export command="taskset -c 0 \
$executable -best -keyed -instances 1000 -datalen 63000 $pub_string"
$command >> $output_folder/pub.csv;
"#;

const SUBSCRIBER: &str = r#"
export executable=$1
export output_folder=$2
export nic=172.16.0.2
export sub_string="-sub \
        -transport UDPv4 \
        -nic $nic \
        -noPrint \
        -noOutputHeaders \
        -noXML"
for DATALEN in 32 8192 100000; do
    export command="taskset -c 0 \
    $executable $sub_string -datalen $DATALEN"
    $command >> $output_folder/sub.csv;
done
export command="taskset -c 0 \
$executable -best -keyed -instances 1000 $sub_string -datalen 63000"
$command >> $output_folder/sub.csv;
"#;

#[test]
fn published_scripts_run_and_fill_their_files() {
    let Some(cable) = Cable::lay() else { return };
    let folder = TempDir::new().unwrap();
    let mut subscriber = cable.start(1, SUBSCRIBER, folder.path());
    let published = cable.start(0, PUBLISHER, folder.path()).wait().unwrap();
    assert!(published.success() && subscriber.wait().unwrap().success());
    let rows = |name: &str| -> Vec<Vec<f64>> {
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
        text.lines().map(|line| line.split(',').map(|cell| cell.trim().parse().unwrap()).collect()).collect()
    };
    let sizes = [32.0, 8192.0, 100_000.0, 63_000.0];
    let (latency, throughput) = (rows("pub.csv"), rows("sub.csv"));
    assert_eq!((latency.len(), throughput.len()), (4, 4));
    for ((latency, throughput), size) in latency.iter().zip(&throughput).zip(sizes) {
        assert_eq!((latency.len(), latency[0]), (10, size));
        assert!(
            latency[3] <= latency[5] && latency[5..].is_sorted() && latency[9] <= latency[4],
            "{latency:?}"
        );
        assert_eq!((throughput.len(), throughput[0]), (6, size));
        assert!(throughput[1] > 0.0 && throughput[2] > 0.0, "{throughput:?}");
    }
    // Reliable runs lose nothing.
    assert!(throughput[..3].iter().all(|row| row[4..] == [0.0, 0.0]), "{throughput:?}");
}
