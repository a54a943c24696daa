// Package files reads, writes and locks files the way every command needs it.
//
//		err := files.Write("token", text, 0o600)
//
//	  - [Write] and [Create] write a file completely or not at all: readers see the old content or the
//	    new content, even after a crash. If two processes write the same file, the last Commit wins and
//	    their contents never mix.
//	  - [Follow] returns the file at the end of symbolic links, as Write does.
//	  - [OpenPrivate] opens files that only their owner may use: on Unix by mode bits, on Windows by an
//	    access control list.
//	  - [ReadText], [ReadSecret], [DecodeText] and [NewTextReader] read text that people and other tools wrote, in
//	    UTF-8 or UTF-16, with or without a byte order mark: lines, keys, settings, passwords, tokens,
//	    PEM. Values in the store are bytes, so they are never read as text.
//	  - [ReadFile], [ReadAll] and [Limit] refuse what is larger than the maximum of its kind, a regular file before
//	    memory is taken for it.
//	  - [Lock] and [TryLock] lock a file against other processes. The operating system releases a lock when its
//	    file is closed, so a lock never outlives its process.
//	  - [RetryBusy] tries again when Windows refuses to open, replace or remove a file because another
//	    process is using it. [Open] and what reads files here do so.
package files
