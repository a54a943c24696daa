# Runs one deployment at a time, as deploy-lock.sh does: waits for the lock of the target, deploys,
# and stores the revision with a fencing token, so that a pipeline whose lock has expired cannot
# overwrite it. For PowerShell 7 and Windows PowerShell 5.1.
#
#	deploy-lock.ps1 TARGET REVISION [COMMAND [ARG...]]
#
# Without COMMAND it stores the revision and deploys nothing. Exits with the exit code of COMMAND,
# with 75 if another pipeline held the lock for ten minutes, or with the exit code of sscli.

if ($args.Count -lt 2) {
    [Console]::Error.WriteLine('deploy-lock.ps1: want TARGET REVISION [COMMAND [ARG...]]')
    exit 2
}
$target = $args[0]
$revision = $args[1]
$command = @($args | Select-Object -Skip 2)
$lock = "deploy/$target/lock"
$key = "deploy/$target/revision"

# Without the lock, run this script again as the command under the lock.
if ($env:SSCLI_LOCK_NAME -cne $lock) {
    $wait = '10m'
    if ($env:DEPLOY_WAIT) { $wait = $env:DEPLOY_WAIT }
    $powershell = (Get-Process -Id $PID).Path
    sscli lock run $lock --wait $wait -E 75 '--' $powershell -NoProfile -File $PSCommandPath @args
    exit $LASTEXITCODE
}

$current = sscli get $key -o raw
if ($LASTEXITCODE -gt 1) { exit $LASTEXITCODE }
if ($LASTEXITCODE -eq 1) { $current = 'none' }
if ($current -ceq $revision) {
    "${target}: $revision is there already"
    exit 0
}
"${target}: from $current to $revision"

if ($command.Count -gt 0) {
    $arguments = @($command | Select-Object -Skip 1)
    # sscli ends this script, and what it started, before another can acquire the lock.
    & $command[0] @arguments
    if (-not $?) { exit [Math]::Max(1, $LASTEXITCODE) }
}

# This writes nothing if the lock has been lost since.
sscli -q set $key $revision --fence lock | Out-Null
exit $LASTEXITCODE
