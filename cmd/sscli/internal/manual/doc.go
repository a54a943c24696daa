// Package manual has what explains sscli: the commands `sscli man` and `sscli version`, the topics
// of `sscli help`, and the manual pages.
//
// [NewMan] and [NewVersion] make the commands, [Topics] the topics; their texts are in topics.go.
//
// Manual pages are made from the tree of commands, so they have no text of their own:
//
//	err := manual.WritePages(app.NewRoot(a), "pages", manual.Edition{Version: "1.2.3", Date: "2026-01-31"})
//
// [Blocks] splits a help text into prose, tables and literal lines; docs/commands.md is made with
// it too. So a help text begins its prose at the left margin, and indents or aligns everything
// else.
package manual
