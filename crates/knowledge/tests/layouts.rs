//! Packages laid out as others publish theirs are loaded as they are.

use hart_knowledge::skills::native_tool;

use crate::shelf::{Shelf, names};

#[test]
fn deerflows_layout() {
    let shelf = Shelf::new();
    shelf.put(
        "skills/custom/podcast-notes/SKILL.md",
        "---\nname: podcast-notes\ndescription: |\n  Turns a transcript into show notes.\n  Use it when a transcript is uploaded.\n\
         license: MIT\nversion: 0.3\nauthor: Example\ncompatibility: python>=3.9\nallowed-tools:\n  - read_file\n  - write_file\n\
         required-secrets:\n  - NOTES_TOKEN\nsecrets-autonomous: false\nmetadata:\n  tags: [audio, text]\n---\n\n# Notes\n",
    );
    shelf.put("skills/custom/podcast-notes/references/style.md", "Short sentences.\n");
    shelf.put("skills/custom/podcast-notes/templates/notes.md", "# {title}\n");
    shelf.put_script("skills/custom/podcast-notes/scripts/cut.py", "import sys\nprint(sys.argv)\n");
    shelf.put(
        "skills/custom/podcast-notes/agents.yaml",
        "agents:\n  quote-finder:\n    description: Finds quotes\n    system_prompt: Find quotes.\n    tools: [read_file]\n",
    );
    let catalogue = shelf.catalogue();
    let skill = catalogue.usable("podcast-notes").unwrap_or_else(|| panic!("{:?}", shelf.troubles()));
    assert!(skill.warnings.is_empty(), "{:?}", skill.warnings);
    assert_eq!(
        skill.manifest.description,
        "Turns a transcript into show notes.\nUse it when a transcript is uploaded."
    );
    assert_eq!(skill.manifest.version.as_deref(), Some("0.3"));
    assert_eq!(skill.manifest.allowed_tools.as_deref().unwrap(), ["read_file", "write_file"]);
    assert_eq!(skill.agents[0].name, "quote-finder");
    assert_eq!(skill.files.len(), 5);
    assert_eq!(skill.body().unwrap(), "# Notes");
}

#[test]
fn anthropics_layout() {
    let shelf = Shelf::new();
    // Sorted into folders, names of tools and files as that agent has them.
    let at = "skills/custom/document-skills/form-filler";
    shelf.put(
        &format!("{at}/SKILL.md"),
        "---\nname: form-filler\ndescription: \"Fills forms: reads fields, writes values. Use for applications and surveys.\"\n\
         license: Proprietary. LICENSE.txt has complete terms\nallowed-tools: Read, Write, Bash(python3:*)\n---\n\n# Forms\n\nSee [reference](reference.md) and FORMS.md.\n",
    );
    shelf.put(&format!("{at}/reference.md"), "Fields.\n");
    shelf.put(&format!("{at}/FORMS.md"), "Forms.\n");
    shelf.put(&format!("{at}/LICENSE.txt"), "All rights reserved.\n");
    shelf.put(&format!("{at}/scripts/fill.py"), "#!/usr/bin/env python3\nprint('ok')\n");
    shelf.put(&format!("{at}/examples/inner/SKILL.md"), "data, not a skill");
    let catalogue = shelf.catalogue();
    let skill = catalogue.usable("form-filler").unwrap_or_else(|| panic!("{:?}", shelf.troubles()));
    assert_eq!(skill.location, "/mnt/skills/custom/document-skills/form-filler/SKILL.md");
    let tools: Vec<&str> =
        skill.manifest.allowed_tools.iter().flatten().map(|tool| native_tool(tool)).collect();
    assert_eq!(tools, ["read_file", "write_file", "bash"]);
    assert!(!names(&catalogue).contains(&"inner"));
}
