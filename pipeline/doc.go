// Package pipeline asks programs: it shapes a call with plugins, renders it into
// a request, has a model answer, and reads the reply.
//
// The words it defines:
//
//   - A [Program] is an AI function as data: instruction, fields, worked
//     examples, layout. It is immutable and has a version.
//   - A [Layout] turns a call into a request and reads the reply: two directions
//     of one thing.
//   - A [Plugin] is a named, versioned set of hooks. A [Hook]'s handler is given
//     an event, which is copies, and returns a [Change], which is data. The
//     pipeline checks the change, applies it and records it ([Applied]).
//   - A [Layer] is where plugins are set: program, conversation, block, process.
//   - A [Model] answers a [Request] with a [Reply].
//   - A tool is declared by a program ([ToolDefinition]) and run by what a
//     [Toolbox] has for it. The model calls it ([ToolCall]), is told the result,
//     and goes on until it answers or has been asked too often.
//   - A [Call] is a finished fact: what was asked, sent, answered and changed,
//     failures included.
//   - A [Conversation] asks a program turn by turn, each shown the earlier ones of
//     its branch, and keeps all it needs to go on in a [Store].
//
// To ask: make a [Caller], parse a program with [ParseProgram], and call
// [Caller.Ask] with the inputs and the context of a row. The package is told
// nothing of labels, files, metrics or networks.
package pipeline
