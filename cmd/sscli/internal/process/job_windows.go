package process

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A job is a command and its descendants in a job object. Windows ends them all when the process
// that started the job ends.
type job struct {
	object windows.Handle
	pid    int      // process id of the command and its console process group
	exited chan int // receives the command's exit code
}

// startJob starts a command with the given standard streams, as the first process of a new job. The
// command is created inside the job, so no process that the command starts can be outside the job.
func startJob(path string, args, env []string, streams [3]*os.File) (*job, error) {
	object, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, err
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	_, err = windows.SetInformationJobObject(object, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	var p *windows.ProcessInformation
	if err == nil {
		p, err = createInJob(object, path, args, env, streams)
	}
	if err != nil {
		_ = windows.CloseHandle(object)
		return nil, err
	}
	_ = windows.CloseHandle(p.Thread)
	j := &job{object: object, pid: int(p.ProcessId), exited: make(chan int, 1)}
	go func() {
		_, _ = windows.WaitForSingleObject(p.Process, windows.INFINITE)
		var code uint32
		_ = windows.GetExitCodeProcess(p.Process, &code)
		j.exited <- int(code)
		_ = windows.CloseHandle(p.Process)
	}()
	return j, nil
}

// createInJob starts a command in a job. The command inherits its standard streams and no other
// handle. The command leads a console process group, because Ctrl-Break can only be sent to a
// group.
func createInJob(object windows.Handle, path string, args, env []string, streams [3]*os.File) (*windows.ProcessInformation, error) {
	const attributeJobList = 0x0002000d // PROC_THREAD_ATTRIBUTE_JOB_LIST
	list, err := windows.NewProcThreadAttributeList(2)
	if err != nil {
		return nil, err
	}
	defer list.Delete()
	if err := list.Update(attributeJobList, unsafe.Pointer(&object), unsafe.Sizeof(object)); err != nil {
		return nil, err
	}
	si := windows.StartupInfoEx{ProcThreadAttributeList: list.List()}
	si.Cb, si.Flags = uint32(unsafe.Sizeof(si)), windows.STARTF_USESTDHANDLES
	self := windows.CurrentProcess()
	var inherited []windows.Handle
	for i, to := range []*windows.Handle{&si.StdInput, &si.StdOutput, &si.StdErr} {
		// The handle of a closed stream cannot be duplicated; the command then has no such stream.
		if windows.DuplicateHandle(self, windows.Handle(streams[i].Fd()), self, to, 0, true, windows.DUPLICATE_SAME_ACCESS) == nil {
			defer windows.CloseHandle(*to)
			inherited = append(inherited, *to)
		}
	}
	if len(inherited) > 0 {
		size := uintptr(len(inherited)) * unsafe.Sizeof(inherited[0])
		if err := list.Update(windows.PROC_THREAD_ATTRIBUTE_HANDLE_LIST, unsafe.Pointer(&inherited[0]), size); err != nil {
			return nil, err
		}
	}
	program, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	line, err := windows.UTF16PtrFromString(windows.ComposeCommandLine(args))
	if err != nil {
		return nil, err
	}
	block, err := environmentBlock(env)
	if err != nil {
		return nil, err
	}
	var p windows.ProcessInformation
	err = windows.CreateProcess(program, line, nil, nil, len(inherited) > 0,
		windows.CREATE_UNICODE_ENVIRONMENT|windows.CREATE_NEW_PROCESS_GROUP|windows.EXTENDED_STARTUPINFO_PRESENT,
		&block[0], nil, &si.StartupInfo, &p)
	return &p, err
}

// environmentBlock returns the environment of a new process: zero-terminated UTF-16 strings, and a
// final zero. A variable with a zero byte is an error.
func environmentBlock(env []string) ([]uint16, error) {
	var block []uint16
	for _, kv := range env {
		text, err := windows.UTF16FromString(kv)
		if err != nil {
			return nil, err
		}
		block = append(block, text...)
	}
	if len(env) == 0 {
		block = append(block, 0) // an empty block has two zeros
	}
	return append(block, 0), nil
}

// sendBreak sends Ctrl-Break to the command's group. Only processes that share the console of this
// process get it.
func (j *job) sendBreak() error {
	return windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(j.pid))
}

func (j *job) end() error { return windows.TerminateJobObject(j.object, codeKilled) }

func (j *job) remains() bool {
	var info struct { // JOBOBJECT_BASIC_ACCOUNTING_INFORMATION
		times      [4]int64
		faults     uint32
		total      uint32
		active     uint32
		terminated uint32
	}
	err := windows.QueryInformationJobObject(j.object, windows.JobObjectBasicAccountingInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil)
	return err == nil && info.active > 0
}
