//! `video-server controllers`: everything that `--controller` accepts.

use std::fmt::Write as _;

use comfy_table::{ContentArrangement, Table, presets};
use playrate_cc::Registry;
use playrate_cc::registry::{Alias, Entry, Key, Parameter};
use playrate_transport::Baseline;
use serde_json::{Value, json};

use super::{Failure, print};

#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct ControllersOptions {
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: ControllersOptions) -> Result<(), Failure> {
    let registry = Registry::installed();
    if options.json {
        let text = serde_json::to_string_pretty(&to_json(registry)).map_err(Failure::run)?;
        print(&format!("{text}\n"))
    } else {
        print(&to_text(registry))
    }
}

/// The crate that defines the baselines.
const BASELINE_SOURCE: &str = "quinn-proto 0.11";

fn to_json(registry: &Registry) -> Value {
    let parts: serde_json::Map<_, _> = Key::ALL
        .iter()
        .map(|&key| {
            let parts: Vec<_> = registry.components(key).map(entry_to_json).collect();
            (key.name().to_owned(), json!(parts))
        })
        .collect();
    let controllers = registry.controllers().map(|entry| {
        let mut value = entry_to_json(entry);
        if let Value::Object(fields) = &mut value {
            fields.insert("takes_parts".to_owned(), json!(entry.takes_components()));
        }
        value
    });
    let baselines = Baseline::ALL.map(|baseline| {
        json!({
            "name": baseline.name(),
            "summary": baseline.about(),
            "source": BASELINE_SOURCE,
            "parameters": [],
            "takes_parts": false,
        })
    });
    let controllers: Vec<_> = controllers.chain(baselines).collect();
    let aliases: Vec<_> = registry
        .aliases()
        .map(|alias| {
            json!({
                "name": alias.name,
                "expansion": alias.expansion,
                "summary": alias.summary,
                "source": alias.source,
            })
        })
        .collect();
    json!({ "controllers": controllers, "aliases": aliases, "parts": parts })
}

fn entry_to_json(entry: &Entry) -> Value {
    let parameters: Vec<_> = entry
        .parameters()
        .iter()
        .map(|parameter| {
            json!({
                "name": parameter.name,
                "type": parameter.unit(),
                "accepts": parameter.expected(),
                "default": parameter.default.to_string(),
                "summary": parameter.summary,
            })
        })
        .collect();
    json!({
        "name": entry.name(),
        "summary": entry.summary(),
        "source": entry.source(),
        "parameters": parameters,
    })
}

fn to_text(registry: &Registry) -> String {
    let mut text = String::from(
        "A controller is CONTROLLER[(ARGUMENTS)][+KEY=COMPONENT[(ARGUMENTS)]]…, such as cubic or \
        cubic+start=hystartpp.\n\n",
    );
    let mut section = |title: &str, table: Table| {
        if table.row_count() > 0 {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{title}\n{}\n", table.trim_fmt());
        }
    };
    let shared = shared_parameters(registry);
    let mut controllers = entries(registry.controllers(), &shared);
    for baseline in Baseline::ALL {
        controllers.add_row([baseline.name(), "", baseline.about(), BASELINE_SOURCE]);
    }
    section("Controllers", controllers);
    let mut parameters = table(["Parameters of several controllers, and their defaults"]);
    parameters.add_rows(shared.iter().map(|described| [described]));
    section("Shared parameters", parameters);
    section("Short names", aliases(registry.aliases()));
    for key in Key::ALL {
        section(
            &format!("Components: +{key}=…"),
            entries(registry.components(key), &[]),
        );
    }
    text
}

/// Columns of text: the width of a terminal next to an editor.
const WIDTH: u16 = 120;

fn table<const COLUMNS: usize>(header: [&str; COLUMNS]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH)
        .set_header(header);
    table
}

/// Descriptions of the parameters that several controllers share, each once.
fn shared_parameters(registry: &Registry) -> Vec<String> {
    let parameters = registry.controllers().flat_map(Entry::parameters);
    let (mut seen, mut shared) = (Vec::new(), Vec::new());
    for described in parameters.map(describe) {
        if seen.contains(&described) && !shared.contains(&described) {
            shared.push(described);
        } else {
            seen.push(described);
        }
    }
    shared
}

/// A table of `entries`. Parameters in `shared` are only named; they are described elsewhere.
fn entries<'a>(entries: impl Iterator<Item = &'a Entry>, shared: &[String]) -> Table {
    let mut table = table(["Name", "Parameters and their defaults", "What it does", "Source"]);
    for entry in entries {
        let parameters = entry.parameters().iter().map(|parameter| {
            let described = describe(parameter);
            if shared.contains(&described) {
                format!("{}={}", parameter.name, parameter.default)
            } else {
                described
            }
        });
        let parameters: Vec<_> = parameters.collect();
        table.add_row([
            entry.name(),
            &parameters.join("\n"),
            entry.summary(),
            entry.source(),
        ]);
    }
    table
}

fn describe(parameter: &Parameter) -> String {
    format!(
        "{}={}: {} ({})",
        parameter.name,
        parameter.default,
        parameter.summary,
        parameter.expected()
    )
}

fn aliases<'a>(aliases: impl Iterator<Item = &'a Alias>) -> Table {
    let mut table = table(["Name", "Stands for", "What it does", "Source"]);
    for alias in aliases {
        table.add_row([alias.name, alias.expansion, alias.summary, alias.source]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_listed_with_its_source() {
        let registry = Registry::installed();
        let (text, value) = (to_text(registry), to_json(registry));
        for entry in registry.entries() {
            assert!(text.contains(entry.name()), "{}", entry.name());
            assert!(!entry.source().is_empty(), "{} has no source", entry.name());
            let list = match entry.key() {
                None => &value["controllers"],
                Some(key) => &value["parts"][key.name()],
            };
            let listed = list.as_array().unwrap().iter();
            let found = listed.filter(|listed| listed["name"] == entry.name()).count();
            assert_eq!(found, 1, "{}", entry.name());
        }
        assert_eq!(
            value["aliases"].as_array().unwrap().len(),
            registry.aliases().count()
        );
    }

    #[test]
    fn baselines_take_no_components_and_algorithms_do() {
        let value = to_json(&Registry::builtin());
        let takes = |name: &str| {
            let controllers = value["controllers"].as_array().unwrap();
            let found = controllers.iter().find(|entry| entry["name"] == name);
            found.unwrap()["takes_parts"].as_bool()
        };
        assert_eq!(takes("cubic"), Some(true));
        assert_eq!(takes("quinn-cubic"), Some(false));
    }
}
