//! `weir lab`: virtual hosts. Each test has a lab of its own. Without root or the necessary programs a test reports
//! that and passes, unless `WEIR_REQUIRE_NETNS` is set.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::support::{BRIEF, Finished, KilledOnDrop, Scene, is_missing};

/// A lab that is removed at the end of the test.
struct TestLab {
    scene: Scene,
    name: String,
}

impl TestLab {
    /// `None`: this machine has no namespaces, which is reported.
    fn new(test: &str) -> Option<Self> {
        let works = |program: &str, words: &[&str]| {
            Command::new(program).args(words).output().is_ok_and(|output| output.status.success())
        };
        let is_root = works("unshare", &["--net", "ip", "link"]) && works("tc", &["-V"]);
        if is_missing((!is_root).then(|| "network namespaces need root and iproute2".to_owned())) {
            return None;
        }
        Some(Self { scene: Scene::new(), name: format!("t{}{test}", std::process::id()) })
    }

    fn lab(&self, words: &str) -> Finished {
        let (command, rest) = words.split_once(' ').unwrap_or((words, ""));
        self.scene.weir(&format!("lab {command} --name {} {rest}", self.name))
    }

    fn namespaces(&self) -> Vec<String> {
        let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| name.starts_with(&format!("weir-lab-{}.", self.name))).collect()
    }

    /// Measures between two hosts; returns the case.
    fn measure(&self, hosts: &str) -> serde_json::Value {
        let hosts = hosts.replace("lab:", &format!("lab:{}/", self.name));
        let words = format!(
            "bench --output results {BRIEF} --engines weir --tests throughput --sizes 1000 --batch 0 --cpus none \
             --reliability reliable --format json --hosts {hosts}"
        );
        self.scene.weir(&words).expect_code(0).json()["cases"][0].clone()
    }

    fn files(&self) -> Vec<PathBuf> {
        let ends = ["json", "emulator"].map(|end| PathBuf::from(format!("/run/weir/{}.{end}", self.name)));
        ends.into_iter().filter(|path| path.exists()).collect()
    }
}

impl Drop for TestLab {
    fn drop(&mut self) {
        self.lab("down");
    }
}

#[test]
fn three_hosts_meet_at_a_switch_and_results_name_the_link() {
    let Some(lab) = TestLab::new("switch") else { return };
    let said = lab.lab("up --link veth,rate=100M,mtu=1400 a b c").expect_code(0).stdout;
    assert!(said.starts_with("link: veth,mtu=1400,rate=100M,gso=on\nhost a: 10.78.0.1"), "{said}");
    let case = lab.measure("pub=lab:a,sub=lab:c");
    let path = case["path"].as_str().unwrap();
    assert!(path.starts_with("lab veth,mtu=1400,rate=100M,gso=on, pub=lab:"), "{path}");
    assert_eq!(case["throughput"]["lost"], 0);
    assert!(case["throughput"]["total_samples"].as_u64() > Some(0), "{case}");
    let said = lab.lab("exec b -- ip -oneline address").expect_code(0).stdout;
    assert!(said.contains("10.78.0.2/24"), "{said}");
    lab.lab("exec b -- sh -c false").expect_code(1);
    lab.lab("exec d -- true").expect_code(2).expect_stderr("there are a, b, c");
    lab.lab("up").expect_code(3).expect_stderr("is up");
    assert_eq!(lab.namespaces().len(), 4);
    lab.lab("down").expect_code(0);
    assert_eq!((lab.namespaces().len(), lab.files().len()), (0, 0));
    lab.lab("status").expect_code(1);
    lab.lab("exec b -- true").expect_code(3).expect_stderr("is not up");
}

#[test]
fn an_emulated_link_carries_and_ends_with_its_lab() {
    let Some(lab) = TestLab::new("tun") else { return };
    if is_missing((!PathBuf::from("/dev/net/tun").exists()).then(|| "no /dev/net/tun".to_owned())) {
        return;
    }
    lab.lab("up --link tun,rtt=2ms,rate=50M").expect_code(0);
    lab.lab("status").expect_code(0);
    let case = lab.measure("pub=lab:a,sub=lab:b");
    assert_eq!(case["throughput"]["lost"], 0);
    assert!(case["path"].as_str().unwrap().starts_with("lab tun,mtu=1500,"), "{case}");
    let text = fs::read_to_string(&lab.files()[1]).unwrap();
    let process = PathBuf::from("/proc").join(text.split(' ').next().unwrap());
    assert!(process.exists());
    let said = lab.lab("down").expect_code(0).stdout;
    assert!(said.contains("removed the link emulator"), "{said}");
    // A zombie has no file descriptors.
    assert!(!process.join("fd").exists() || fs::read_dir(process.join("fd")).is_err());
    assert_eq!((lab.namespaces().len(), lab.files().len()), (0, 0));
}

#[test]
fn what_a_killed_lab_has_left_is_removed() {
    let Some(lab) = TestLab::new("killed") else { return };
    // Killed while it makes its hosts, as soon as there is one.
    let hosts: Vec<String> = (1..=40).map(|number| format!("h{number}")).collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(["lab", "up", "--name", &lab.name]).args(&hosts).stdout(Stdio::null());
    let mut up = KilledOnDrop::spawn(&mut command);
    while lab.namespaces().is_empty() {
        std::thread::yield_now();
    }
    up.process.kill().unwrap();
    up.process.wait().unwrap();
    lab.lab("status").expect_code(1);
    lab.lab("up").expect_code(3).expect_stderr("weir lab down");
    lab.lab("down").expect_code(0);
    assert_eq!((lab.namespaces().len(), lab.files().len()), (0, 0));
    // The same without the file.
    lab.lab("up").expect_code(0);
    fs::remove_file(&lab.files()[0]).unwrap();
    let said = lab.lab("status").expect_code(1).stdout;
    assert!(said.contains("left over"), "{said}");
    lab.lab("up").expect_code(3).expect_stderr("are in the way");
    lab.lab("down").expect_code(0);
    assert_eq!(lab.namespaces().len(), 0);
}

#[test]
fn what_can_be_no_lab_is_refused() {
    let check = |words: &str, expected: &str| {
        Scene::new().weir(&format!("lab {words}")).expect_code(2).expect_stderr(expected);
    };
    check("up a", "a lab has 2 to 100 hosts");
    check("up --link lte a b c", "an emulated link joins two hosts");
    check("up --name ../x", "is no name for a lab");
    check("up --link dsl", "is not a link");
}
