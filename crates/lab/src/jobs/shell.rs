//! Commands as a POSIX shell reads them.

/// Stands in a command for what the shell replaces; no argument of a program can contain it.
pub(super) const PLACEHOLDER: &str = "\0";

/// The command line of `words`, with the shell's expression `value` in place of [`PLACEHOLDER`].
pub(super) fn command_line(words: &[String], value: &str) -> String {
    let words = words.iter().map(|word| {
        if word.is_empty() {
            return "''".to_owned();
        }
        let parts = word.split(PLACEHOLDER).map(quoted);
        parts.collect::<Vec<_>>().join(&format!("\"{value}\""))
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A word, or a part of one, that the shell takes as it is.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%@+".contains(c);
    if text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_words_that_were_written() {
        let words = [
            "printf", "<%s>", "a b", "it's", "$HOME", "λ", "1\0/4", "x y/\0", "`id`", "", "\"", "a\nb",
        ];
        let line = command_line(&words.map(str::to_owned), "$((INDEX + 1))");
        let output = std::process::Command::new("sh")
            .args(["-c", &line])
            .env("INDEX", "2")
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said, "<a b><it's><$HOME><λ><13/4><x y/3><`id`><><\"><a\nb>");
    }
}
