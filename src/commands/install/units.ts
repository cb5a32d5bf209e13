/** The paths and addresses for the units of an installation. */
export interface UnitSettings {
  /** Absolute path of Node. */
  readonly node: string;
  /** Absolute path of the release's folder, or of a checkout. */
  readonly program: string;
  /** Files that systemd reads as root and passes to the service alone, by setting. */
  readonly credentials: {
    readonly keyFile: string;
    readonly databasePasswordFile: string;
    readonly exchangeTokenFile: string;
  };
  /** URL of the runner's server. */
  readonly server: string;
}

/** A file of the installation; its path is relative to the root folder. */
export interface InstalledFile {
  readonly path: string;
  readonly mode: number;
  readonly text: string;
  /** True for a file that the operator edits: it is created once and never changed. */
  readonly isOwnersAfterwards: boolean;
}

const SETTINGS_FOLDER = "etc/chartroom";
export const UNITS_FOLDER = "etc/systemd/system";

/** Returns every file that `chartroom install systemd` writes. */
export function installedFiles(settings: UnitSettings): readonly InstalledFile[] {
  const unit = (name: string, text: string) => file(`${UNITS_FOLDER}/${name}`, 0o644, text, false);
  return [
    unit("chartroom.service", serverUnit(settings)),
    unit("chartroom-runner.service", runnerUnit(settings)),
    unit("chartroom-backup.service", backupUnit(settings)),
    file("etc/sysusers.d/chartroom.conf", 0o644, ACCOUNTS, false),
    file(`${SETTINGS_FOLDER}/server.env`, 0o640, SERVER_SETTINGS, true),
    file(`${SETTINGS_FOLDER}/runner.env`, 0o640, runnerSettings(settings), true),
  ];
}

function file(path: string, mode: number, text: string, isOwnersAfterwards: boolean): InstalledFile {
  return { path, mode, text, isOwnersAfterwards };
}

const ACCOUNTS = `# The users of Chartroom's services; systemd-sysusers makes them.
u chartroom - "Chartroom server" /var/lib/chartroom
u chartroom-runner - "Chartroom runner" /var/lib/chartroom-runner
`;

const SERVER_SETTINGS = `# Settings of the server, one NAME=value a line; "chartroom serve --help" lists them all.
# After a change: systemctl restart chartroom. What it reads again: systemctl reload chartroom.
#CHARTROOM_HOST=0.0.0.0
#CHARTROOM_BASE_URL=https://chartroom.example.org
#CHARTROOM_TLS_CERT=/etc/chartroom/tls/fullchain.pem
#CHARTROOM_TLS_KEY=/etc/chartroom/tls/privkey.pem
#CHARTROOM_DATABASE_URL=postgres://chartroom@db.example.org/chartroom?sslmode=verify-full
# With chartroom-backup.service: where copies of the data go, whose age is a metric, when they are made (in UTC), and how
# many stay. A folder elsewhere has to be one that the user chartroom may write; systemctl edit chartroom-backup gives it
# ReadWritePaths=.
#CHARTROOM_BACKUP_FOLDER=/var/lib/chartroom-backups
#BACKUP_SCHEDULE="17 3 * * *"
#BACKUP_KEEP=14
#BACKUP_KEEP_DAYS=0
`;

const runnerSettings = ({
  server,
}: UnitSettings) => `# Settings of the runner, one NAME=value a line; "chartroom runner --help" lists them all.
# After a change: systemctl restart chartroom-runner.
CHARTROOM_SERVER=${server}
# Never auto: where this class does not work, the runner does not start, instead of keeping its work in less.
CHARTROOM_ISOLATION=bubblewrap
#CHARTROOM_CA_FILE=/etc/chartroom/ca.pem
`;

/** The restrictions of both services, which need nothing that these deny. */
const HARDENING = `NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelModules=yes
ProtectClock=yes
ProtectHostname=yes
RestrictRealtime=yes
LockPersonality=yes
SystemCallArchitectures=native
RemoveIPC=yes
UMask=0077`;

/** Restrictions that would break the sandboxes of a runner's work, so the runner does not have them. */
const TIGHTER = `ProtectKernelTunables=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectProc=invisible
RestrictNamespaces=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
SystemCallErrorNumber=EPERM
# Not MemoryDenyWriteExecute: Node compiles to machine code while it runs.`;

function serverUnit({ node, program, credentials }: UnitSettings): string {
  return `[Unit]
Description=Chartroom server
Wants=network-online.target
After=network-online.target postgresql.service

[Service]
Type=exec
User=chartroom
Group=chartroom
StateDirectory=chartroom
StateDirectoryMode=0700
CacheDirectory=chartroom
WorkingDirectory=/var/lib/chartroom
# What Node compiles is kept for the next start.
Environment=NODE_COMPILE_CACHE=/var/cache/chartroom
Environment=CHARTROOM_DATA_DIR=/var/lib/chartroom/data
Environment=CHARTROOM_FIRST_TOKEN_FILE=/var/lib/chartroom/first-token
EnvironmentFile=-/${SETTINGS_FOLDER}/server.env
${dataCredentials(credentials)}ExecStart=${quoted(node)} --max-semi-space-size=16 ${quoted(`${program}/bin/chartroom.js`)} serve
# Reads certificates, sign-in providers and issuers again; it never ends the server.
ExecReload=/bin/sh -c "kill -HUP \${MAINPID}"
Restart=on-failure
RestartSec=2
TimeoutStopSec=30
LimitNOFILE=65536
${HARDENING}
${TIGHTER}

[Install]
WantedBy=multi-user.target
`;
}

function runnerUnit({ node, program, credentials }: UnitSettings): string {
  return `[Unit]
Description=Chartroom runner
Wants=network-online.target
After=network-online.target chartroom.service

[Service]
Type=exec
User=chartroom-runner
Group=chartroom-runner
StateDirectory=chartroom-runner
StateDirectoryMode=0700
CacheDirectory=chartroom-runner
WorkingDirectory=/var/lib/chartroom-runner
Environment=NODE_COMPILE_CACHE=/var/cache/chartroom-runner
Environment=CHARTROOM_STATE_DIR=/var/lib/chartroom-runner
Environment=CHARTROOM_ISOLATION=bubblewrap
EnvironmentFile=-/${SETTINGS_FOLDER}/runner.env
${credential("CHARTROOM_EXCHANGE_TOKEN_FILE", "exchange-token", credentials.exchangeTokenFile)}ExecStart=${quoted(node)} ${quoted(`${program}/bin/chartroom.js`)} runner
ExecReload=/bin/sh -c "kill -HUP \${MAINPID}"
Restart=on-failure
RestartSec=2
# Work that can end does, and the rest is given back.
TimeoutStopSec=90
KillMode=mixed
LimitNOFILE=65536
# Its own part of the tree of control groups, for the limits of its work.
Delegate=yes
${HARDENING}
# Left as it is for the sandboxes of the work: RestrictNamespaces, SystemCallFilter and RestrictAddressFamilies would
# forbid them; with ProtectKernelTunables, ProtectKernelLogs or ProtectProc the kernel lets no sandbox have a /proc of
# its own; ProtectControlGroups would take away what Delegate gives.

[Install]
WantedBy=multi-user.target
`;
}

function backupUnit({ node, program, credentials }: UnitSettings): string {
  return `[Unit]
Description=Chartroom copies of the data
Wants=network-online.target
After=network-online.target postgresql.service chartroom.service

[Service]
Type=exec
User=chartroom
Group=chartroom
StateDirectory=chartroom chartroom-backups
StateDirectoryMode=0700
CacheDirectory=chartroom
WorkingDirectory=/var/lib/chartroom-backups
Environment=NODE_COMPILE_CACHE=/var/cache/chartroom
Environment=CHARTROOM_DATA_DIR=/var/lib/chartroom/data
Environment=CHARTROOM_BACKUP_FOLDER=/var/lib/chartroom-backups
Environment="BACKUP_SCHEDULE=17 3 * * *" BACKUP_KEEP=14 BACKUP_KEEP_DAYS=0
EnvironmentFile=-/${SETTINGS_FOLDER}/server.env
${dataCredentials(credentials)}ExecStart=${quoted(node)} ${quoted(`${program}/bin/chartroom.js`)} backup \${CHARTROOM_BACKUP_FOLDER} --schedule \${BACKUP_SCHEDULE} --keep \${BACKUP_KEEP} --keep-days \${BACKUP_KEEP_DAYS}
Restart=on-failure
RestartSec=60
# A copy that is being made is finished, or left for the next start to remove.
TimeoutStopSec=90
Nice=10
${HARDENING}
${TIGHTER}

[Install]
WantedBy=multi-user.target
`;
}

function dataCredentials({ keyFile, databasePasswordFile }: UnitSettings["credentials"]): string {
  return (
    credential("CHARTROOM_KEY_FILE", "key.json", keyFile) +
    credential("CHARTROOM_DATABASE_PASSWORD_FILE", "database-password", databasePasswordFile)
  );
}

/** Returns the lines that pass a file to the service; none when no file is named. */
function credential(setting: string, name: string, path: string): string {
  return path === "" ? "" : `LoadCredential=${name}:${path}\nEnvironment=${setting}=%d/${name}\n`;
}

/** Quotes a path as an argument of a unit's command line. */
function quoted(path: string): string {
  const escaped = path.replaceAll("%", "%%").replaceAll("$", "$$$$");
  return /[\s"'\\;]/.test(escaped) ? `"${escaped.replace(/["\\]/g, "\\$&")}"` : escaped;
}
