(pair key: (string (string_content) @name)) @definition.key
