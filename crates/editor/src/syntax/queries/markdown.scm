(section . (atx_heading heading_content: (_) @name)) @definition.section
(setext_heading heading_content: (_) @name) @definition.section
