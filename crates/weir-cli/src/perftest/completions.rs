//! Completion scripts of `perftest`, whose single-dash options no generator knows.

use std::fmt::Write as _;

use clap_complete::Shell;

use super::options::{self, OptionDef, Takes};

/// The script; `None` for a shell without one.
pub(crate) fn completions(shell: Shell) -> Option<String> {
    let options = || options::WORKING.iter().flat_map(|group| group.options);
    let mut text = String::new();
    match shell {
        Shell::Bash => {
            let names: Vec<String> = options().map(|option| format!("-{}", option.name)).collect();
            text += "_perftest() {\n    case \"$3\" in\n";
            for option in options() {
                if let Some(reply) = bash_value(option) {
                    _ = writeln!(text, "    -{}) {reply} ;;", option.name);
                }
            }
            _ = write!(
                text,
                "    *) COMPREPLY=($(compgen -W '{}' -- \"$2\")) ;;\n    esac\n}}\ncomplete -F _perftest perftest\n",
                names.join(" ")
            );
        }
        Shell::Zsh => {
            text += "#compdef perftest\n\n_arguments \\\n";
            for option in options() {
                let about =
                    option.about.replace('[', "(").replace(']', ")").replace(':', "\\:").replace('\'', "");
                _ = writeln!(text, "    '*-{}[{about}]{}' \\", option.name, zsh_value(option));
            }
            text += "    && return 0\n";
        }
        Shell::Fish => {
            for option in options() {
                let about = option.about.replace('\'', "\\'");
                let value = match option.takes {
                    Takes::Nothing => String::new(),
                    Takes::OneOf(choices) => format!(" -x -a '{}'", supported(option, choices)),
                    _ if is_file(option) => " -r".to_owned(),
                    _ => " -x".to_owned(),
                };
                _ = writeln!(text, "complete -c perftest -o {}{value} -d '{about}'", option.name);
            }
        }
        _ => return None,
    }
    Some(text)
}

/// The supported choices, separated by spaces.
fn supported(option: &OptionDef, choices: &[&str]) -> String {
    if option.name == "transport" { "UDPv4".to_owned() } else { choices.join(" ") }
}

fn is_file(option: &OptionDef) -> bool {
    option.takes == Takes::Text("file")
}

fn bash_value(option: &OptionDef) -> Option<String> {
    match option.takes {
        Takes::Nothing | Takes::MaybeNumber(..) | Takes::MaybeText(_) => None,
        Takes::OneOf(choices) => {
            Some(format!("COMPREPLY=($(compgen -W '{}' -- \"$2\"))", supported(option, choices)))
        }
        _ if is_file(option) => Some("COMPREPLY=($(compgen -f -- \"$2\"))".to_owned()),
        _ => Some("COMPREPLY=()".to_owned()),
    }
}

fn zsh_value(option: &OptionDef) -> String {
    match option.takes {
        Takes::Nothing => String::new(),
        Takes::Number(..) => ":number:".to_owned(),
        Takes::MaybeNumber(..) => "::number:".to_owned(),
        Takes::MaybeText(_) => "::value:".to_owned(),
        Takes::OneOf(choices) => format!(":value:({})", supported(option, choices)),
        Takes::Text(_) if is_file(option) => ":file:_files".to_owned(),
        Takes::Text(_) => ":value:".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn every_working_option_is_completed() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = completions(shell).unwrap();
            for option in options::WORKING.iter().flat_map(|group| group.options) {
                let name = if shell == Shell::Fish {
                    format!("-o {}", option.name)
                } else {
                    format!("-{}", option.name)
                };
                assert!(script.contains(&name), "{shell}: {name}");
            }
            assert!(!script.contains("-secureDebug"), "{shell}");
        }
        assert_eq!(completions(Shell::Elvish), None);
    }

    #[test]
    fn bash_completes_names_and_values() {
        let reply = |previous: &str, word: &str| {
            let script = completions(Shell::Bash).unwrap();
            let call =
                format!("{script}_perftest perftest '{word}' '{previous}'; echo \"${{COMPREPLY[@]}}\"");
            let output = Command::new("bash").args(["-c", &call]).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        assert_eq!(reply("-pub", "-pubR"), "-pubRate -pubRatebps");
        assert_eq!(reply("-outputFormat", "l"), "legacy");
        assert_eq!(reply("-transport", ""), "UDPv4");
        assert_eq!(reply("-dataLen", ""), "");
    }
}
