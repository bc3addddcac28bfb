(mod_item name: (_) @name) @definition.module
(struct_item name: (_) @name) @definition.struct
(union_item name: (_) @name) @definition.struct
(enum_item name: (_) @name) @definition.enum
(enum_variant name: (_) @name) @definition.enum_member
(field_declaration name: (_) @name) @definition.field
(trait_item name: (_) @name) @definition.trait
(impl_item body: (_) @until) @definition.impl
(declaration_list (function_item name: (_) @name parameters: (parameters (self_parameter))) @definition.method)
(declaration_list (function_signature_item name: (_) @name parameters: (parameters (self_parameter))) @definition.method)
(function_item name: (_) @name) @definition.function
(function_signature_item name: (_) @name) @definition.function
(type_item name: (_) @name) @definition.type
(associated_type name: (_) @name) @definition.type
(const_item name: (_) @name) @definition.constant
(static_item name: (_) @name) @definition.constant
(macro_definition name: (_) @name) @definition.macro
