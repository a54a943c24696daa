package main

// table is the one table of commands: the parser, the shell, help, completion and the
// manual pages are made from it.
func table() []command {
	return append(verbCommands(), []command{
		{"watch", newWatch},
		{"lock", newLock},
		{"ping", newPing},
		{"doctor", newDoctor},
		{"bench", newBench},
		{"hlc", newHLC},
		{"batch", newBatch},
		{"shell", newShell},
		{"serve", newServe},
		{"context", newContext},
		{"man", newMan},
		{"version", newVersion},
	}...)
}
