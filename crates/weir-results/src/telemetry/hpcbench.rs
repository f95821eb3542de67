//! Telemetry in the format of hpcbench's system logs.

use super::Telemetry;

impl Telemetry {
    /// Formats the rows as hpcbench's system log, `.c_log` and `.s_log`.
    ///
    /// For each network device the host's load and the device's traffic, then the load of each
    /// processor, of which there may be any number. Unknown values are 0, as the format has no
    /// other way to express them.
    #[must_use]
    pub fn hpcbench_log(&self, host: &str, date: &str) -> String {
        let mut devices: Vec<&str> =
            self.names().filter_map(|name| name.strip_suffix(".recv_packets")).collect();
        devices.sort_unstable_by_key(|device| (*device != "lo", *device));
        let cpus = self.cpus();
        let shown_devices: Vec<&str> = devices.iter().map(|device| shown(device)).collect();
        let mut text = format!(
            "# {host} syslog -- {date}\n# Watch times: {}\n# Network devices (interface): {} ( {} )\n# CPU number: {}\n",
            self.rows(),
            devices.len(),
            shown_devices.join(" "),
            cpus.len()
        );
        for device in devices {
            text += &self.device_block(device, &cpus);
        }
        text += "\n## CPU workload distribution: \n##\n";
        for (index, cpu) in cpus.iter().enumerate() {
            if index > 0 {
                text.push('\n');
            }
            text += &self.cpu_block(*cpu);
        }
        text
    }

    /// Returns the numbers of the processors, in order.
    fn cpus(&self) -> Vec<u32> {
        let number = |name: &str| name.strip_prefix("cpu")?.strip_suffix(".idle_percent")?.parse().ok();
        let mut cpus: Vec<u32> = self.names().filter_map(number).collect();
        cpus.sort_unstable();
        cpus
    }

    fn known(&self, name: &str, row: usize) -> f64 {
        self.value(name, row).unwrap_or(0.0)
    }

    fn device_block(&self, device: &str, cpus: &[u32]) -> String {
        let shown = shown(device);
        let mut text = format!(
            "\n##### System info, statistics of network interface <{shown}> and its interrupts to each CPU #####\n\
             #       CPU(%)     Mem(%)  Interrupt  Page   Swap   Context           <{shown}> information\n\
             #   Load User  Sys  Usage   Overall  In/out In/out   Swtich   RecvPkg    RecvByte   SentPkg    SentByte  "
        );
        text += &cpus.iter().map(|cpu| format!("Int-CPU{cpu} ")).collect::<String>();
        text.push('\n');
        for row in 0..self.rows() {
            let of = |name: &str| self.known(name, row);
            let (user, system) = (of("cpu.user_percent"), of("cpu.system_percent"));
            text += &format!(
                "{row:<3}{:>5.0}{user:>5.0}{system:>5.0}{:>7.0}{:>10.0}{:>8.0}{:>7.0}{:>9.0}",
                user + system,
                of("memory.used_percent"),
                of("interrupts"),
                of("paging.in_kib") + of("paging.out_kib"),
                of("swapping.in_pages") + of("swapping.out_pages"),
                of("context_switches")
            );
            let of_device = |name: &str| self.known(&format!("{device}.{name}"), row);
            text += &format!(
                "{:>10.0}{:>12.0}{:>10.0}{:>12.0}",
                of_device("recv_packets"),
                of_device("recv_bytes"),
                of_device("sent_packets"),
                of_device("sent_bytes")
            );
            for (index, cpu) in cpus.iter().enumerate() {
                let count = of_device(&format!("cpu{cpu}_interrupts"));
                let width = if index == 0 { 10 } else { 9 };
                text += &format!("{count:>width$.0}");
            }
            text.push('\n');
        }
        text
    }

    fn cpu_block(&self, cpu: u32) -> String {
        let mut text = format!(
            "##         CPU{cpu} workload (%)           Overall CPU workload (%)\n\
             #   < load   user  system   idle >  < load   user  system   idle >\n"
        );
        for row in 0..self.rows() {
            let of = |name: &str, kind: &str| self.known(&format!("{name}.{kind}_percent"), row);
            let one = format!("cpu{cpu}");
            let (user, system, idle) = (of(&one, "user"), of(&one, "system"), of(&one, "idle"));
            let (all_user, all_system, all_idle) =
                (of("cpu", "user"), of("cpu", "system"), of("cpu", "idle"));
            text += &format!(
                "{row:<3}{:>7.1}{user:>7.1}{system:>7.1}{idle:>8.1}{:>10.1}{all_user:>7.1}{all_system:>7.1}{all_idle:>8.1}\n",
                user + system,
                all_user + all_system
            );
        }
        text
    }
}

/// hpcbench calls the loopback device `loop`.
fn shown(device: &str) -> &str {
    if device == "lo" { "loop" } else { device }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(cpus: usize) -> Vec<(String, f64)> {
        let mut row = vec![
            ("memory.used_percent".to_owned(), 99.0),
            ("interrupts".to_owned(), 83_973.0),
            ("context_switches".to_owned(), 29_119.0),
            ("paging.in_kib".to_owned(), 40.0),
            ("paging.out_kib".to_owned(), 8.0),
        ];
        let names = (0..cpus).map(|cpu| format!("cpu{cpu}")).chain(["cpu".to_owned()]);
        for name in names {
            for (kind, value) in [("user", 1.0), ("system", 11.0), ("idle", 88.0)] {
                row.push((format!("{name}.{kind}_percent"), value));
            }
        }
        for device in ["eth0", "lo"] {
            let traffic = [("recv_packets", 375.0), ("recv_bytes", 36_087.0), ("sent_packets", 410_864.0)];
            let traffic = traffic.into_iter().chain([("sent_bytes", 616_797_166.0)]);
            row.extend(traffic.map(|(name, value)| (format!("{device}.{name}"), value)));
            row.extend((0..cpus).map(|cpu| (format!("{device}.cpu{cpu}_interrupts"), 82_506.0)));
        }
        row
    }

    #[test]
    fn the_log_is_that_of_the_page_with_as_many_processors_as_there_are() {
        let mut telemetry = Telemetry::new(0);
        telemetry.push(1000, figures(12));
        telemetry.push(2000, figures(12));
        let text = telemetry.hpcbench_log("mk1", "Tue Jul 13 23:50:45 2004");
        assert!(text.starts_with(
            "# mk1 syslog -- Tue Jul 13 23:50:45 2004\n# Watch times: 2\n\
             # Network devices (interface): 2 ( loop eth0 )\n# CPU number: 12\n\n\
             ##### System info, statistics of network interface <loop> and its interrupts to each CPU #####\n"
        ));
        let row = "1     12    1   11     99     83973      48      0    29119       375       36087    410864   616797166     82506    82506";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("Int-CPU11 \n"), "{text}");
        assert!(
            text.contains("\n##         CPU11 workload (%)           Overall CPU workload (%)\n"),
            "{text}"
        );
        assert!(
            text.contains("\n1     12.0    1.0   11.0    88.0      12.0    1.0   11.0    88.0\n"),
            "{text}"
        );
        assert!(text.ends_with("88.0\n"));
        assert_eq!(Telemetry::new(0).hpcbench_log("a", "b").lines().count(), 7);
    }
}
