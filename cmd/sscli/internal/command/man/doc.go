// Package man is the command `sscli man`, which writes the manual pages.
//
// The pages are generated from the tree of commands:
//
//	err := man.WritePages(cmdline.NewRoot(a), "pages", man.Edition{Version: "1.2.3", Date: "2026-01-31"})
//
// [Blocks] splits a help text into prose, tables and literal lines; docs/commands.md is made with
// it too. So a help text begins its prose at the left margin, and indents or aligns everything
// else.
package man
