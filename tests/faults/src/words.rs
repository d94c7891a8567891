//! Lines of at most [`WIDTH`] columns.

/// Width of all output in columns.
const WIDTH: usize = 80;

/// `words` after `mark`, wrapped at [`WIDTH`] columns. Further lines are indented by the width of the mark. Ends with a
/// line break.
pub(crate) fn wrapped(mark: &str, words: &str) -> String {
    let indent = mark.chars().count();
    let (mut text, mut line) = (String::new(), mark.to_owned());
    for word in words.split_whitespace() {
        let length = line.chars().count();
        if length > indent && length + word.chars().count() >= WIDTH {
            text += line.trim_end();
            text.push('\n');
            line = " ".repeat(indent);
        } else if length > indent {
            line.push(' ');
        }
        line += word;
    }
    text + line.trim_end() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_broken_below_their_mark() {
        let word = "x".repeat(38);
        let text = format!("{word} {word} {word}");
        assert_eq!(wrapped("- ", &text), format!("- {word} {word}\n  {word}\n"));
        let indented = format!("--- {word}\n    {word}\n    {word}\n");
        assert_eq!(wrapped("--- ", &text), indented);
    }
}
