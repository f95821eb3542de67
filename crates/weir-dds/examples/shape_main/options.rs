//! The options of the suite's program, parsed as by `getopt_long`.

use std::time::Duration;

use weir_dds::{DataRepresentation, Durability, Ownership, Presentation, PresentationScope, TopicQos};

/// What is done to the instances before the writers are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinalState {
    Unregister,
    Dispose,
}

/// The parsed options.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Options {
    pub(crate) asks_for_help: bool,
    pub(crate) publish: bool,
    pub(crate) subscribe: bool,
    pub(crate) domain_id: u32,
    pub(crate) topic: String,
    /// The colour to publish, or to filter by.
    color: Option<String>,
    pub(crate) partition: Option<String>,
    pub(crate) is_best_effort: bool,
    pub(crate) durability: Durability,
    pub(crate) representation: DataRepresentation,
    /// `None`: the default of the engine; 0: KEEP_ALL.
    pub(crate) history_depth: Option<u32>,
    pub(crate) deadline: Option<Duration>,
    /// `None`: shared.
    pub(crate) ownership_strength: Option<i32>,
    pub(crate) time_filter: Option<Duration>,
    pub(crate) lifespan: Option<Duration>,
    /// 0: counts up with each sample.
    pub(crate) shapesize: i32,
    pub(crate) size_modulo: Option<i32>,
    pub(crate) print_writer_samples: bool,
    pub(crate) use_read: bool,
    pub(crate) takes_by_instance: bool,
    pub(crate) write_period: Duration,
    pub(crate) read_period: Duration,
    pub(crate) num_iterations: Option<u32>,
    pub(crate) num_instances: u32,
    pub(crate) num_topics: u32,
    pub(crate) final_state: Option<FinalState>,
    access_scope: Option<char>,
    pub(crate) coherent: bool,
    pub(crate) ordered: bool,
    coherent_sample_count: Option<u32>,
    pub(crate) additional_payload_size: usize,
    periodic_announcement: Duration,
    fragment_size: u32,
    cft_expression: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            asks_for_help: false,
            publish: false,
            subscribe: false,
            domain_id: 0,
            topic: String::new(),
            color: None,
            partition: None,
            is_best_effort: false,
            durability: Durability::Volatile,
            representation: DataRepresentation::Xcdr1,
            history_depth: None,
            deadline: None,
            ownership_strength: None,
            time_filter: None,
            lifespan: None,
            shapesize: SHAPESIZE,
            size_modulo: None,
            print_writer_samples: false,
            use_read: false,
            takes_by_instance: true,
            write_period: Duration::from_millis(33),
            read_period: Duration::from_millis(100),
            num_iterations: None,
            num_instances: 1,
            num_topics: 1,
            final_state: None,
            access_scope: None,
            coherent: false,
            ordered: false,
            coherent_sample_count: None,
            additional_payload_size: 0,
            periodic_announcement: Duration::ZERO,
            fragment_size: 0,
            cft_expression: None,
        }
    }
}

impl Options {
    /// The policies that writers and readers have in common.
    pub(crate) fn topic_qos(&self) -> TopicQos {
        let qos = TopicQos::default().durability(self.durability).data_representation([self.representation]);
        let qos = if self.is_best_effort { qos.best_effort() } else { qos.reliable() };
        let qos = match self.history_depth {
            None => qos,
            Some(0) => qos.keep_all(),
            Some(depth) => qos.keep_last(depth),
        };
        let qos = if self.ownership_strength.is_some() { qos.ownership(Ownership::Exclusive) } else { qos };
        match self.deadline {
            Some(period) => qos.deadline(period),
            None => qos,
        }
    }

    /// Parses and checks the command line, without the name of the program.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if let Some(long) = argument.strip_prefix("--") {
                let (name, attached) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value)),
                    None => (long, None),
                };
                let name = full_name(name)?;
                let value = match (takes_value(name), attached) {
                    (false, None) => "",
                    (false, Some(_)) => return Err(format!("--{name} takes no value")),
                    (true, Some(value)) => value,
                    (true, None) => rest.next().ok_or_else(|| format!("--{name} needs a value"))?,
                };
                options.set(name, value)?;
            } else if let Some(cluster) = argument.strip_prefix('-').filter(|it| !it.is_empty()) {
                let letters = cluster.char_indices();
                for (at, letter) in letters {
                    let name = &cluster[at..at + letter.len_utf8()];
                    if !takes_value(name) {
                        options.set(name, "")?;
                        continue;
                    }
                    let attached = &cluster[at + letter.len_utf8()..];
                    let value = match attached {
                        "" => rest.next().ok_or_else(|| format!("-{name} needs a value"))?,
                        attached => attached,
                    };
                    options.set(name, value)?;
                    break;
                }
            } else {
                return Err(format!("unexpected argument '{argument}'"));
            }
        }
        if !options.asks_for_help {
            options.check()?;
        }
        Ok(options)
    }

    /// The colour to publish.
    pub(crate) fn color(&self) -> &str {
        self.color.as_deref().unwrap_or("BLUE")
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "h" | "help" => self.asks_for_help = true,
            "v" => one_of(name, value, &[("e", ()), ("d", ())])?,
            "P" => self.publish = true,
            "S" => self.subscribe = true,
            "d" => self.domain_id = number(name, value, 0)?,
            "b" => self.is_best_effort = true,
            "r" => self.is_best_effort = false,
            "k" => self.history_depth = Some(number(name, value, 0)?),
            "f" => self.deadline = time(name, value)?,
            "s" => self.ownership_strength = Some(number(name, value, -1)?).filter(|strength| *strength >= 0),
            "t" => value.clone_into(&mut self.topic),
            "c" => self.color = Some(value.to_owned()),
            "p" => self.partition = Some(value.to_owned()),
            "D" => self.durability = one_of(name, value, &DURABILITIES)?,
            "x" => {
                let representations = [("1", DataRepresentation::Xcdr1), ("2", DataRepresentation::Xcdr2)];
                self.representation = one_of(name, value, &representations)?;
            }
            "w" => self.print_writer_samples = true,
            "z" => self.shapesize = number(name, value, 0)?,
            "R" => self.use_read = true,
            _ => return self.set_long(name, value),
        }
        Ok(())
    }

    fn set_long(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "write-period" => self.write_period = time(name, value)?.unwrap_or_default(),
            "read-period" => self.read_period = time(name, value)?.unwrap_or_default(),
            "time-filter" => self.time_filter = time(name, value)?,
            "lifespan" => self.lifespan = time(name, value)?,
            "num-iterations" => self.num_iterations = Some(number(name, value, 1)?),
            "num-instances" => self.num_instances = number(name, value, 1)?,
            "num-topics" => self.num_topics = number(name, value, 1)?,
            "final-instance-state" => {
                let state =
                    one_of(name, value, &[("u", FinalState::Unregister), ("d", FinalState::Dispose)])?;
                if self.final_state.is_some_and(|other| other != state) {
                    return Err("--final-instance-state: choose one of u and d".to_owned());
                }
                self.final_state = Some(state);
            }
            "access-scope" => {
                self.access_scope = Some(one_of(name, value, &[("i", 'i'), ("t", 't'), ("g", 'g')])?);
            }
            "coherent" => self.coherent = true,
            "ordered" => self.ordered = true,
            "coherent-sample-count" => self.coherent_sample_count = Some(number(name, value, 2)?),
            "additional-payload-size" => self.additional_payload_size = number(name, value, 1)?,
            "take-read" => self.takes_by_instance = false,
            "periodic-announcement" => self.periodic_announcement = time(name, value)?.unwrap_or_default(),
            "datafrag-size" => {
                self.fragment_size = number(name, value, 0)?;
                if self.fragment_size > u32::from(u16::MAX) {
                    return Err(format!("--datafrag-size: {value} is too large: use at most {}", u16::MAX));
                }
            }
            "cft" => self.cft_expression = Some(value.to_owned()),
            "size-modulo" => self.size_modulo = Some(number(name, value, 1)?),
            _ => return Err(format!("unknown option '{name}'")),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let text = match self {
            _ if self.topic.is_empty() => "please specify topic name [-t]",
            _ if self.publish == self.subscribe => "please specify one of publish [-P] and subscribe [-S]",
            _ if self.subscribe && self.color.is_some() && self.cft_expression.is_some() => {
                "error: cannot specify both --cft and -c for subscriber applications"
            }
            _ => return Ok(()),
        };
        Err(text.to_owned())
    }

    /// Which options have no effect.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let (publish, subscribe) = (self.publish, self.subscribe);
        let is_presented = self.coherent || self.ordered;
        let on_publisher = [
            (self.time_filter.is_some(), "time based filter [--time-filter]"),
            (self.use_read, "use read [-R]"),
            (!self.takes_by_instance, "--take-read"),
            (self.cft_expression.is_some(), "--cft"),
        ];
        let on_subscriber = [
            (self.shapesize != SHAPESIZE, "shapesize [-z]"),
            (self.lifespan.is_some(), "--lifespan"),
            (self.num_instances > 1, "--num-instances"),
            (self.final_state.is_some(), "--final-instance-state"),
            (self.coherent_sample_count.is_some(), "--coherent-sample-count"),
            (self.additional_payload_size > 0, "--additional-payload-size"),
        ];
        let ignored = |is_wrong_side: bool, side: &'static str, options: &[(bool, &str)]| {
            let given = options.iter().filter(|(is_given, _)| *is_given && is_wrong_side);
            Vec::from_iter(given.map(|(_, name)| format!("{name} ignored on {side} applications")))
        };
        let mut warnings = ignored(publish, "publisher", &on_publisher);
        warnings.extend(ignored(subscribe, "subscriber", &on_subscriber));
        let others = [
            (publish && self.color.is_none(), "color was not specified, defaulting to \"BLUE\""),
            (
                !is_presented && self.coherent_sample_count.is_some(),
                "--coherent-sample-count ignored because not coherent, or ordered access enabled",
            ),
            (
                !is_presented && self.access_scope.is_some(),
                "--access-scope set but not coherent, or ordered access enabled",
            ),
            (
                self.size_modulo.is_some() && self.shapesize != 0,
                "--size-modulo has no effect unless shapesize (-z) is set to 0",
            ),
            (
                !self.periodic_announcement.is_zero(),
                "--periodic-announcement ignored: the engine announces participants every few seconds",
            ),
        ];
        warnings.extend(others.iter().filter(|(is_so, _)| *is_so).map(|(_, text)| (*text).to_owned()));
        warnings
    }

    /// PRESENTATION of the publisher or subscriber. The scope counts only with coherent or ordered access.
    pub(crate) fn presentation(&self) -> Presentation {
        let is_presented = self.coherent || self.ordered;
        let scope = match self.access_scope.filter(|_| is_presented) {
            Some('t') => PresentationScope::Topic,
            Some('g') => PresentationScope::Group,
            _ => PresentationScope::Instance,
        };
        Presentation { scope, coherent_access: self.coherent, ordered_access: self.ordered }
    }

    /// How many samples of each writer and instance form a coherent set.
    pub(crate) fn coherent_sample_count(&self) -> Option<u32> {
        self.coherent_sample_count.filter(|_| self.coherent || self.ordered)
    }

    /// Refuses another size of fragments: the engine chooses it by the path to the readers.
    pub(crate) fn refuse_fragment_size(&self) -> Result<(), String> {
        if self.fragment_size == 0 {
            Ok(())
        } else {
            Err("Data Fragmentation Size = not supported".to_owned())
        }
    }

    /// The content filter of readers, and its parameters: an expression, or the colour.
    pub(crate) fn filter(&self) -> Option<(String, Vec<String>)> {
        let by_expression = self.cft_expression.clone().map(|expression| (expression, Vec::new()));
        let by_color = self.color.as_ref().map(|color| ("color = %0".to_owned(), vec![format!("'{color}'")]));
        by_expression.or(by_color)
    }
}

const DURABILITIES: [(&str, Durability); 4] = [
    ("v", Durability::Volatile),
    ("l", Durability::TransientLocal),
    ("t", Durability::Transient),
    ("p", Durability::Persistent),
];

/// The default size of a shape.
const SHAPESIZE: i32 = 20;

/// The long options, and whether they take a value.
const LONG: [(&str, bool); 19] = [
    ("help", false),
    ("write-period", true),
    ("read-period", true),
    ("final-instance-state", true),
    ("access-scope", true),
    ("coherent", false),
    ("ordered", false),
    ("coherent-sample-count", true),
    ("additional-payload-size", true),
    ("num-topics", true),
    ("lifespan", true),
    ("num-instances", true),
    ("num-iterations", true),
    ("take-read", false),
    ("time-filter", true),
    ("periodic-announcement", true),
    ("datafrag-size", true),
    ("cft", true),
    ("size-modulo", true),
];

/// The short options that take a value.
const SHORT_WITH_VALUE: &str = "cdDfkpsxtvz";

fn takes_value(name: &str) -> bool {
    let long = LONG.iter().find(|(other, _)| *other == name);
    long.map_or_else(|| name.len() == 1 && SHORT_WITH_VALUE.contains(name), |(_, takes)| *takes)
}

/// Completes an abbreviated long option.
fn full_name(name: &str) -> Result<&'static str, String> {
    let exact = LONG.iter().find(|(other, _)| *other == name);
    let mut begun = LONG.iter().filter(|(other, _)| other.starts_with(name) && !name.is_empty());
    match (exact, begun.next(), begun.next()) {
        (Some((name, _)), _, _) | (None, Some((name, _)), None) => Ok(name),
        (None, None, _) => Err(format!("unknown option '--{name}'")),
        (None, Some((one, _)), Some((other, _))) => {
            Err(format!("ambiguous option '--{name}': use --{one} or --{other}"))
        }
    }
}

/// Chooses by the first letter of the value.
fn one_of<T: Copy>(name: &str, value: &str, choices: &[(&str, T)]) -> Result<T, String> {
    let known = choices.iter().find(|(letter, _)| value.starts_with(letter));
    known.map(|(_, choice)| *choice).ok_or_else(|| {
        let letters: Vec<&str> = choices.iter().map(|(letter, _)| *letter).collect();
        format!("unrecognized value for {name} '{value}': use one of {}", letters.join(", "))
    })
}

fn number<T: TryFrom<i64>>(name: &str, value: &str, min: i64) -> Result<T, String> {
    let number = value.parse::<i64>().ok().filter(|number| *number >= min);
    let number = number.and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| format!("incorrect value for {name} '{value}': use a number from {min} on"))
}

/// A time in ms; `None` if it is 0.
fn time(name: &str, value: &str) -> Result<Option<Duration>, String> {
    let time = Duration::from_millis(u64::from(number::<u32>(name, value, 0)?));
    Ok(Some(time).filter(|time| !time.is_zero()))
}

/// What `--help` prints.
pub(crate) const USAGE: &str = "\
shape_main: publishes or subscribes shapes, for the DDS interoperability suite of the OMG
   -h, --help      : print this text
   -v [e|d]        : accepted; all messages are printed
   -P, -S          : publish, subscribe
   -d <int>        : domain id (default: 0)
   -b, -r          : BEST_EFFORT, RELIABLE reliability (default: reliable)
   -k <depth>      : history depth [0: KEEP_ALL]
   -f <ms>         : DEADLINE [0: off]
   -s <strength>   : ownership strength [-1: SHARED]
   -t <topic_name> : topic name
   -c <color>      : color to publish (filter if subscriber)
   -p <partition>  : partition
   -D [v|l|t|p]    : durability: VOLATILE, TRANSIENT_LOCAL, TRANSIENT, PERSISTENT
   -x [1|2]        : data representation: XCDR, XCDR2 (default: 1)
   -w              : print the publisher's samples
   -z <int>        : shapesize [0: increase it with every sample]
   -R              : use read() instead of take()
   --write-period <ms>             : time between writes (default: 33)
   --read-period <ms>              : time between reads (default: 100)
   --time-filter <ms>              : TIME_BASED_FILTER [0: off]
   --lifespan <ms>                 : LIFESPAN of samples
   --num-iterations <int>          : end after this many writes or reads
   --num-instances <int>           : write instances BLUE, BLUE1, BLUE2, ...
   --num-topics <int>              : use topics Square, Square1, Square2, ...
   --final-instance-state [u|d]    : unregister or dispose at the end
   --access-scope [i|t|g]          : PRESENTATION: INSTANCE, TOPIC, GROUP
   --coherent, --ordered           : PRESENTATION: coherent, ordered access
   --coherent-sample-count <int>   : samples of each writer and instance in a coherent set
   --additional-payload-size <int> : bytes added to each sample
   --take-read                     : read or take all samples at once, not by instance
   --periodic-announcement <ms>    : accepted; without effect
   --datafrag-size <bytes>         : size of fragments
   --cft <expression>              : content filter
   --size-modulo <int>             : with -z 0: shapesize in the range [1, N]";
