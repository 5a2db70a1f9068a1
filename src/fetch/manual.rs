//! What a person does where the program has no network.

use super::check::Sum;
use crate::graph::PublishedFile;
use crate::net::Bytes;

/// How to fetch files by hand: from where, how to check them, where to put them.
pub(super) fn by_hand(set: &str, files: &[PublishedFile]) -> String {
    let mut text = String::from("by hand:");
    for file in files {
        let bytes = file.bytes.or(file.roughly);
        let bytes = bytes.map_or(String::new(), |bytes| format!(" ({})", Bytes(bytes)));
        text += &format!("\n  download  {}{bytes}", file.at);
    }
    for file in files {
        let sum: Option<Sum> = file.sum.as_ref().and_then(|sum| sum.parse().ok());
        if let Some(sum) = sum {
            text += &format!("\n  check     {}", sum.command(file.name()));
        }
    }
    text + &format!(
        "\n  then      grapevine fetch {set} --from FOLDER, where FOLDER has the downloaded files"
    )
}
