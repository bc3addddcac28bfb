//! Prism's extension for VS Code and the editors made of it: what it consists of, and the `.vsix` that they install it
//! from. It is in this program, so that one file is all that a machine needs; it is built in `editors/vscode`.

mod archive;
pub mod kept;
pub mod program;

use archive::ZipArchive;
use serde_json::Value;

/// As the editors know it: its publisher and its name.
pub const ID: &str = "prism.prism";

/// It has the version of the program that it came with, so that an update of one is an update of the other.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

const MANIFEST: &str = include_str!("../../../editors/vscode/package.json");

/// Its files, as they lie in `editors/vscode`.
const FILES: &[(&str, &[u8])] = &[
    ("package.json", MANIFEST.as_bytes()),
    ("README.md", include_bytes!("../../../editors/vscode/README.md")),
    ("media/prism.svg", include_bytes!("../../../editors/vscode/media/prism.svg")),
    ("dist/extension.js", include_bytes!("../../../editors/vscode/dist/extension.js")),
];

/// Returns the package that an editor installs. The same program makes the same bytes.
pub fn package() -> Vec<u8> {
    let mut archive = ZipArchive::default();
    archive.add("[Content_Types].xml", content_types().as_bytes());
    archive.add("extension.vsixmanifest", package_manifest().as_bytes());
    for (name, content) in FILES {
        archive.add(&format!("extension/{name}"), content);
    }
    archive.finish()
}

/// What each file is, by the ending of its name. Such packages are read by programs that want to know it of every file.
fn content_types() -> String {
    let mut endings: Vec<&str> =
        FILES.iter().filter_map(|(name, _)| name.rsplit_once('.')).map(|(_, end)| end).collect();
    endings.push("vsixmanifest");
    endings.sort_unstable();
    endings.dedup();
    let types: String = endings
        .iter()
        .map(|ending| {
            let content = match *ending {
                "js" => "application/javascript",
                "json" => "application/json",
                "md" => "text/markdown",
                "png" => "image/png",
                "svg" => "image/svg+xml",
                "vsixmanifest" => "text/xml",
                _ => "application/octet-stream",
            };
            format!("<Default Extension=\".{ending}\" ContentType=\"{content}\"/>")
        })
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
         <Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\">{types}</Types>\n"
    )
}

/// What the editors' shops read in place of `package.json`: the same, in other words.
fn package_manifest() -> String {
    // The one in the tree is always read by a test; a broken one would be an extension without a name.
    let manifest: Value = serde_json::from_str(MANIFEST).unwrap_or_default();
    let text = |pointer: &str| escaped(manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default());
    let kinds = manifest["extensionKind"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let kinds = escaped(&kinds.collect::<Vec<_>>().join(","));
    let icon = match manifest["icon"].as_str() {
        Some(icon) => format!(
            "\n    <Asset Type=\"Microsoft.VisualStudio.Services.Icons.Default\" Path=\"extension/{}\" \
             Addressable=\"true\"/>",
            escaped(icon)
        ),
        None => String::new(),
    };
    format!(
        r#"<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id="{name}" Version="{version}" Publisher="{publisher}"/>
    <DisplayName>{title}</DisplayName>
    <Description xml:space="preserve">{about}</Description>
    <Categories>Other</Categories>
    <GalleryFlags>Public</GalleryFlags>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value="{engine}"/>
      <Property Id="Microsoft.VisualStudio.Code.ExtensionKind" Value="{kinds}"/>
    </Properties>
  </Metadata>
  <Installation>
    <InstallationTarget Id="Microsoft.VisualStudio.Code"/>
  </Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true"/>{icon}
  </Assets>
</PackageManifest>
"#,
        name = text("/name"),
        version = text("/version"),
        publisher = text("/publisher"),
        title = text("/displayName"),
        about = text("/description"),
        engine = text("/engines/vscode"),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    fn folder() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../editors/vscode"))
    }

    #[test]
    fn the_extension_has_the_version_of_the_program() {
        let manifest: Value = serde_json::from_str(MANIFEST).unwrap();
        assert_eq!(manifest["version"], VERSION, "set it in editors/vscode/package.json");
        let id = format!("{}.{}", manifest["publisher"].as_str().unwrap(), manifest["name"].as_str().unwrap());
        assert_eq!(id, ID);
    }

    // What a package.json names and what lies in media/ must be in the package, or the editor shows holes.
    #[test]
    fn the_package_has_all_that_the_extension_needs() {
        let packed: BTreeSet<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        let media = fs::read_dir(folder().join("media")).into_iter().flatten().flatten();
        let media = media.map(|entry| format!("media/{}", entry.file_name().to_str().unwrap()));
        let missing: Vec<String> = media.chain(named_files()).filter(|name| !packed.contains(name)).collect();
        assert!(missing.is_empty(), "add them to FILES: {missing:?}");
    }

    /// Every value in package.json that is a file beside it.
    fn named_files() -> BTreeSet<String> {
        fn strings(value: &Value, found: &mut BTreeSet<String>) {
            match value {
                Value::String(text) => drop(found.insert(text.trim_start_matches("./").to_owned())),
                Value::Array(items) => items.iter().for_each(|item| strings(item, found)),
                Value::Object(members) => members.values().for_each(|member| strings(member, found)),
                _ => {}
            }
        }
        let mut manifest: Value = serde_json::from_str(MANIFEST).unwrap();
        manifest.as_object_mut().unwrap().remove("scripts");
        let mut found = BTreeSet::new();
        strings(&manifest, &mut found);
        found.retain(|name| folder().join(name).is_file());
        assert!(found.contains("dist/extension.js"), "{found:?}");
        found
    }

    #[test]
    fn what_is_written_into_xml_stays_text() {
        assert_eq!(escaped(r#"a<b & "c">"#), "a&lt;b &amp; &quot;c&quot;&gt;");
    }
}
