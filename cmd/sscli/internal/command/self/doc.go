// Package self has the commands about sscli itself: completion, man and version.
//
// The manual pages are generated from the tree of commands:
//
//	err := self.WritePages(cmdline.NewRoot(a), "pages", self.Edition{Version: "1.2.3", Date: "2026-01-31"})
//
// [Blocks] splits a help text into prose, tables and literal lines, for the pages and for
// docs/commands.md. So a help text must begin prose at the left margin, and indent or align everything
// else.
package self
