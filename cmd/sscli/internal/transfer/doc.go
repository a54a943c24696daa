// Package transfer moves the keys of a store: `sscli export` writes them as JSON Lines,
// `sscli import` sets them, `sscli diff` compares them with a file or another store.
//
// [NewExport], [NewImport] and [NewDiff] make the commands. Keys are read by package bulkread,
// many at a time and in memory that does not grow; import is the loading of package batch.
package transfer
