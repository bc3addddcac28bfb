(class_definition name: (_) @name) @definition.class
(class_definition body: (block (function_definition name: (_) @name) @definition.method))
(class_definition body: (block (decorated_definition definition: (function_definition name: (_) @name) @definition.method)))
(function_definition name: (_) @name) @definition.function
(module (expression_statement (assignment left: (identifier) @name) @definition.variable))
(class_definition body: (block (expression_statement (assignment left: (identifier) @name) @definition.field)))
(type_alias_statement left: (_) @name) @definition.type
