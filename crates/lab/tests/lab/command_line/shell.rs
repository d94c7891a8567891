//! Completions for shells, and man pages.

use std::fs;

use super::Lab;

#[test]
fn completions_name_the_commands() {
    let completions = Lab::new().succeeds("completions bash");
    for part in ["complete -F _lab", "report", "--controllers"] {
        assert!(completions.contains(part), "{part}");
    }
}

#[test]
fn every_command_has_a_man_page_with_its_options() {
    let lab = Lab::new();
    lab.succeeds("man .");
    let page = fs::read_to_string(lab.path("lab-demo.1")).unwrap();
    assert!(page.contains("controllers") && page.contains("queue"), "{page}");
    let refused = lab.is_refused("man ./nowhere");
    assert!(refused.contains("./nowhere"), "{refused}");
}
