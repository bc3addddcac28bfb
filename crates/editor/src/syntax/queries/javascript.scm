(class_declaration name: (_) @name) @definition.class
(method_definition name: (_) @name) @definition.method
(field_definition property: (_) @name) @definition.field
(function_declaration name: (_) @name) @definition.function
(generator_function_declaration name: (_) @name) @definition.function
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @definition.function
(variable_declarator name: (identifier) @name value: (class)) @definition.class
(program (lexical_declaration (variable_declarator name: (identifier) @name) @definition.variable))
(program (variable_declaration (variable_declarator name: (identifier) @name) @definition.variable))
(export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @definition.variable))
(assignment_expression left: (member_expression) @name right: [(arrow_function) (function_expression)]) @definition.function
