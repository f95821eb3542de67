//! What the hosts did meanwhile, in the form of hpcbench's system logs.

use weir_telemetry::{CpuTimes, HostCounters};

/// Looks at this host's counters; each look but the first ends an entry of the log.
#[derive(Debug, Default)]
pub(crate) struct SystemLog {
    last: Option<HostCounters>,
    entries: Vec<HostCounters>,
}

impl SystemLog {
    /// The most entries that are kept: 10 000 trials, more than a day.
    const ENTRIES_MAX: usize = 10_000;

    /// Looks at the counters.
    pub(crate) fn watch(&mut self) {
        self.take(HostCounters::read());
    }

    fn take(&mut self, now: HostCounters) {
        if let Some(last) = self.last.replace(now.clone())
            && self.entries.len() < Self::ENTRIES_MAX
        {
            self.entries.push(now.since(&last));
        }
    }

    /// The log as text.
    pub(crate) fn text(&self, host: &str, date: &str) -> String {
        let devices: Vec<&str> = self
            .entries
            .last()
            .map_or_else(Vec::new, |entry| entry.devices.iter().map(|d| shown(&d.name)).collect());
        let cpus = self.entries.last().map_or(0, |entry| entry.cpus.len());
        let mut text = format!(
            "# {host} syslog -- {date}\n# Watch times: {}\n# Network devices (interface): {} ( {} )\n# CPU number: {cpus}\n",
            self.entries.len(),
            devices.len(),
            devices.join(" ")
        );
        for device in self.entries.last().map_or(&[][..], |entry| &entry.devices) {
            text += &self.device_block(&device.name, cpus);
        }
        text += "\n## CPU workload distribution: \n##\n";
        for cpu in 0..cpus {
            if cpu > 0 {
                text.push('\n');
            }
            text += &self.cpu_block(cpu);
        }
        text
    }

    fn device_block(&self, name: &str, cpus: usize) -> String {
        let shown = shown(name);
        let mut text = format!(
            "\n##### System info, statistics of network interface <{shown}> and its interrupts to each CPU #####\n\
             #       CPU(%)     Mem(%)  Interrupt  Page   Swap   Context           <{shown}> information\n\
             #   Load User  Sys  Usage   Overall  In/out In/out   Swtich   RecvPkg    RecvByte   SentPkg    SentByte  "
        );
        text += &(0..cpus).map(|cpu| format!("Int-CPU{cpu} ")).collect::<String>();
        text.push('\n');
        for (number, entry) in self.entries.iter().enumerate() {
            let (user, system, _) = entry.all_cpus.percent();
            text += &format!(
                "{number:<3}{:>5.0}{user:>5.0}{system:>5.0}{:>7}{:>10}{:>8}{:>7}{:>9}",
                user + system,
                entry.memory_used_percent,
                entry.interrupts,
                entry.paged_in_out_kib,
                entry.swapped_in_out,
                entry.context_switches
            );
            // A device that was not there yet did nothing.
            let device = entry.devices.iter().find(|device| device.name == name).cloned().unwrap_or_default();
            text += &format!(
                "{:>10}{:>12}{:>10}{:>12}",
                device.recv_packets, device.recv_bytes, device.sent_packets, device.sent_bytes
            );
            for cpu in 0..cpus {
                let count = device.cpu_interrupts.get(cpu).copied().unwrap_or(0);
                let width = if cpu == 0 { 10 } else { 9 };
                text += &format!("{count:>width$}");
            }
            text.push('\n');
        }
        text
    }

    fn cpu_block(&self, cpu: usize) -> String {
        let mut text = format!(
            "##         CPU{cpu} workload (%)           Overall CPU workload (%)\n\
             #   < load   user  system   idle >  < load   user  system   idle >\n"
        );
        for (number, entry) in self.entries.iter().enumerate() {
            let (user, system, idle) = entry.cpus.get(cpu).map_or((0.0, 0.0, 100.0), CpuTimes::percent);
            let (all_user, all_system, all_idle) = entry.all_cpus.percent();
            text += &format!(
                "{number:<3}{:>7.1}{user:>7.1}{system:>7.1}{idle:>8.1}{:>10.1}{all_user:>7.1}{all_system:>7.1}{all_idle:>8.1}\n",
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
    use weir_telemetry::DeviceCounters;

    use super::*;

    fn counters(round: u64) -> HostCounters {
        let cpu = CpuTimes { user: round, system: 11 * round, idle: 88 * round, steal: 0 };
        let device = DeviceCounters {
            name: "eth0".to_owned(),
            recv_packets: 375 * round,
            recv_bytes: 36_087 * round,
            sent_packets: 410_864 * round,
            sent_bytes: 616_797_166 * round,
            cpu_interrupts: vec![82_506 * round; 12],
        };
        HostCounters {
            all_cpus: cpu,
            cpus: vec![cpu; 12],
            interrupts: 83_973 * round,
            context_switches: 29_119 * round,
            paged_in_out_kib: 48 * round,
            swapped_in_out: 0,
            memory_used_percent: 99,
            devices: vec![DeviceCounters { name: "lo".to_owned(), ..device.clone() }, device],
        }
    }

    #[test]
    fn the_log_is_that_of_the_page_with_as_many_processors_as_there_are() {
        let mut log = SystemLog::default();
        (0..3).for_each(|round| log.take(counters(round)));
        let text = log.text("mk1", "Tue Jul 13 23:50:45 2004");
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
    }
}
