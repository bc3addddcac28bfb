(namespace_definition name: (_) @name) @definition.module
(class_specifier name: (_) @name body: (_)) @definition.class
(alias_declaration name: (_) @name) @definition.type
(function_definition declarator: (function_declarator declarator: (qualified_identifier) @name)) @definition.method
(function_definition declarator: (function_declarator declarator: (field_identifier) @name)) @definition.method
(function_definition declarator: (function_declarator declarator: (destructor_name) @name)) @definition.method
(function_definition declarator: (reference_declarator (function_declarator declarator: (_) @name))) @definition.function
(field_declaration declarator: (function_declarator declarator: (field_identifier) @name)) @definition.method
