/* SPDX-License-Identifier: Apache-2.0 */
/* Where each field of the schema goes, one row a field. tests/export/test_formats.py fails when a
 * field of fields.h has no row here; what a row leaves open (NONE) still goes out, under the field's own name:
 * `unmapped` in OCSF, `warder` in ECS, Warder... keys in CEF, camel case in LEEF.
 *
 * Columns: field; OCSF path, first version that has it, form; ECS path, form; CEF key; LEEF key.
 * '$' in a path is the process that the event is about; where that is depends on the kind. "x[]" is a list of
 * one object. '+' = the renderer has rows of its own that carry the value, whole. */
#ifndef WARDER_EXPORTERS_RENDER_MAP_H
#define WARDER_EXPORTERS_RENDER_MAP_H

#define NONE NULL

/* clang-format off */
#define RENDER_MAP(X)                                                                              \
	X(V, "metadata.log_version", V11, STRING, NONE, TYPE, NONE, NONE)                          \
	X(ID, "metadata.uid", V11, TYPE, "event.id", TYPE, "externalId", "eventId")                \
	X(SEQ, "metadata.sequence", V11, TYPE, "event.sequence", TYPE, "cn1", "sequence")          \
	X(TIME, "+", V11, TYPE, "@timestamp", TYPE, "+", "+")                                      \
	X(MONO, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                           \
	X(KIND, "metadata.event_code", V11, TYPE, "event.code", TYPE, "cat", "cat")                   \
	X(VANTAGE, "metadata.log_provider", V11, TYPE, "event.provider", TYPE, "deviceFacility", "vantage") \
	X(SESSION, "metadata.correlation_uid", V11, TYPE, "labels.session_id", TYPE, "cs1", "session") \
	X(SANDBOX, "device.name", V11, TYPE, "container.name", TYPE, "deviceExternalId", "sandbox") \
	X(TENANT, "metadata.tenant_uid", V11, TYPE, "organization.id", TYPE, NONE, "tenant")       \
	X(HOST, "device.hostname", V11, TYPE, "host.name", TYPE, "dvchost", "identHostName")       \
	X(OUTCOME, "+", V11, TYPE, "+", TYPE, "outcome", "outcome")                                \
	X(ERRNO, "status_code", V11, TYPE, "error.code", TYPE, "reason", "reason")                 \
	X(SYSCALL, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                        \
	X(TOCTOU, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                         \
	X(TRUNCATED, "metadata.is_truncated", V18, TYPE, NONE, TYPE, NONE, NONE)                   \
	X(DEGRADED, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                       \
	X(PROC_PID, "$.pid", V11, TYPE, "$.pid", TYPE, "spid", "pid")                              \
	X(PROC_TID, "$.tid", V11, TYPE, "$.thread.id", TYPE, NONE, NONE)                           \
	X(PROC_NSPID, "$.namespace_pid", V11, TYPE, "$.vpid", TYPE, NONE, NONE)                    \
	X(PROC_PPID, "+", V11, TYPE, "$.parent.pid", TYPE, NONE, "parentPid")                      \
	X(PROC_UID, "$.user.uid", V11, STRING, "$.user.id", STRING, "suid", "uid")                 \
	X(PROC_GID, "$.user.groups[].uid", V11, STRING, "$.group.id", STRING, NONE, "gid")         \
	X(PROC_RUID, NONE, V11, TYPE, "$.real_user.id", STRING, NONE, NONE)                        \
	X(PROC_LOGINUID, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                  \
	X(PROC_COMM, "$.name", V11, TYPE, "$.name", TYPE, "sproc", "process")                      \
	X(PROC_EXE, "+", V11, TYPE, "$.executable", TYPE, NONE, "executable")                      \
	X(PROC_SCRIPT, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                    \
	X(PROC_ARGS, "$.cmd_line", V11, COMMAND, "$.args", TYPE, NONE, "commandLine")              \
	X(PROC_ARGC, NONE, V11, TYPE, "$.args_count", TYPE, NONE, NONE)                            \
	X(PROC_ARGS_LEN, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                  \
	X(PROC_ARGS_TRUNCATED, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                            \
	X(PROC_ARGS_TAIL, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                  \
	X(PROC_ARGS_SHA256, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                \
	X(PROC_ARGS_HASHED, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                \
	X(PROC_ENV, NONE, V11, TYPE, "process.env_vars", TYPE, NONE, NONE)                                        \
	X(PROC_ENV_LEN, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                    \
	X(PROC_ENV_TRUNCATED, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                              \
	X(PROC_CWD, "$.working_directory", V15, TYPE, "$.working_directory", TYPE, NONE, NONE)     \
	X(PROC_START, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                     \
	X(PROC_RUNTIME, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                   \
	X(PROC_TTY, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                       \
	X(PROC_STDIN, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                     \
	X(PROC_CAPS, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                      \
	X(PROC_CAPS_PERMITTED, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                            \
	X(PROC_EXE_INO, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                   \
	X(PROC_EXE_DEV, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                   \
	X(PROC_EXE_MTIME, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                  \
	X(PROC_EXE_CTIME, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                  \
	X(PROC_EXE_UID, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                    \
	X(PROC_EXE_MODE, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                   \
	X(PROC_MEMFD, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                     \
	X(PROC_DELETED, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                   \
	X(PROC_DROPPED, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                   \
	X(PROC_DROPPED_BY, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                \
	X(PROC_SETUID, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                    \
	X(PROC_PEXE, "+", V11, TYPE, "$.parent.executable", TYPE, NONE, NONE)                      \
	X(PROC_PCOMM, "+", V11, TYPE, "$.parent.name", TYPE, NONE, "parentProcess")                \
	X(PROC_PARGS, "+", V11, TYPE, "$.parent.args", TYPE, NONE, NONE)                           \
	X(PROC_ANCESTORS, "+", V11, TYPE, NONE, TYPE, NONE, NONE)                                  \
	X(EXEC_PATH, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                       \
	X(EXEC_TRIES, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                      \
	X(CHILD_PID, "process.pid", V11, TYPE, "process.pid", TYPE, "dpid", "childPid")            \
	X(CHILD_NSPID, "process.namespace_pid", V11, TYPE, "process.vpid", TYPE, NONE, NONE)       \
	X(CHILD_START, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                    \
	X(CHILD_FLAGS, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                    \
	X(EXIT_CODE, "exit_code", V11, TYPE, "process.exit_code", TYPE, NONE, "exitCode")          \
	X(EXIT_SIGNAL, "status_detail", V11, TYPE, NONE, TYPE, NONE, "exitSignal")                 \
	X(EXIT_CORE, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                      \
	X(EXIT_UTIME, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                     \
	X(EXIT_STIME, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                     \
	X(SIGNAL_NAME, "status_detail", V11, TYPE, NONE, TYPE, NONE, "signal")                     \
	X(SIGNAL_TARGET, "process.pid", V11, TYPE, NONE, TYPE, "dpid", "targetPid")                \
	X(SIGNAL_COMM, "process.name", V11, TYPE, NONE, TYPE, "dproc", NONE)                        \
	X(PACKAGE_MANAGER, NONE, V11, TYPE, "package.type", TYPE, NONE, NONE)                      \
	X(PACKAGE_NAME, NONE, V11, TYPE, "package.name", TYPE, NONE, NONE)                         \
	X(PACKAGE_VERSION, NONE, V11, TYPE, "package.version", TYPE, NONE, NONE)                   \
	X(PACKAGE_REGISTRY, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                               \
	X(PACKAGE_URL, NONE, V11, TYPE, "package.reference", TYPE, NONE, NONE)                     \
	X(PACKAGE_HASH, NONE, V11, TYPE, "package.checksum", TYPE, NONE, NONE)                     \
	X(PACKAGE_MORE, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                   \
	X(PACKAGE_FROM, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                   \
	X(FILE_PATH, "file.path", V11, TYPE, "file.path", TYPE, "filePath", "filePath")            \
	X(FILE_NAME, "+", V11, TYPE, "file.name", TYPE, "fname", "fileName")                       \
	X(FILE_OLD_PATH, NONE, V11, TYPE, NONE, TYPE, "oldFilePath", "oldFilePath")                \
	X(FILE_RAW_PATH, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                  \
	X(FILE_HOST_PATH, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                 \
	X(FILE_WATCHED, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                   \
	X(FILE_PATH_TRUNCATED, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                             \
	X(FILE_FLAGS, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                     \
	X(FILE_WRITE, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                     \
	X(FILE_CREATED, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                   \
	X(FILE_MODE, NONE, V11, TYPE, "file.mode", OCTAL, NONE, NONE)                              \
	X(FILE_TYPE, NONE, V11, TYPE, "+", TYPE, "fileType", NONE)                                 \
	X(FILE_FD, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                        \
	X(FILE_INO, "file.uid", V11, STRING, "file.inode", STRING, "fileId", NONE)                 \
	X(FILE_DEV, NONE, V11, TYPE, "file.device", TYPE, NONE, NONE)                              \
	X(FILE_BYTES, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                     \
	X(FILE_WRITES, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                     \
	X(FILE_FIRST_WRITE, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                \
	X(FILE_OPEN_ID, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                    \
	X(FILE_PROT, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                       \
	X(FILE_RDEV, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                       \
	X(FILE_OP, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                        \
	X(FILE_XATTR, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                     \
	X(FILE_UID, "file.owner.uid", V11, STRING, "file.uid", STRING, NONE, NONE)                 \
	X(FILE_GID, NONE, V11, TYPE, "file.gid", STRING, NONE, NONE)                               \
	X(FILE_DELETED, "file.is_deleted", V15, TYPE, NONE, TYPE, NONE, NONE)                      \
	X(FILE_UNREACHABLE, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                               \
	X(MOUNT_OP, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                        \
	X(MOUNT_TYPE, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                      \
	X(MOUNT_FLAGS, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                     \
	X(NET_FAMILY, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                     \
	X(NET_PROTO, "connection_info.protocol_name", V11, TYPE, "network.transport", TYPE, "proto", "proto") \
	X(NET_SRC_IP, "src_endpoint.ip", V11, TYPE, "source.ip", TYPE, "src", "src")               \
	X(NET_SRC_PORT, "src_endpoint.port", V11, TYPE, "source.port", TYPE, "spt", "srcPort")     \
	X(NET_DST_IP, "dst_endpoint.ip", V11, TYPE, "destination.ip", TYPE, "dst", "dst")          \
	X(NET_DST_PORT, "dst_endpoint.port", V11, TYPE, "destination.port", TYPE, "dpt", "dstPort") \
	X(NET_DST_NAME, "dst_endpoint.hostname", V11, TYPE, "destination.domain", TYPE, "dhost", "dstName") \
	X(NET_DST_CID, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                     \
	X(NET_UNRESOLVED, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                 \
	X(NET_OPAQUE, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                      \
	X(NET_TYPE, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                        \
	X(NET_PATH, NONE, V11, TYPE, "destination.address", TYPE, NONE, NONE)                      \
	X(NET_COOKIE, "connection_info.uid", V11, STRING, NONE, TYPE, NONE, NONE)                  \
	X(NET_BYTES_OUT, "traffic.bytes_out", V11, TYPE, "source.bytes", TYPE, "out", "srcBytes")  \
	X(NET_BYTES_IN, "traffic.bytes_in", V11, TYPE, "destination.bytes", TYPE, "in", "dstBytes") \
	X(NET_COUNT, "count", V11, TYPE, NONE, TYPE, "cnt", NONE)                                  \
	X(NET_PACKETS_OUT, "traffic.packets_out", V11, TYPE, "source.packets", TYPE, NONE, NONE)    \
	X(NET_PACKETS_IN, "traffic.packets_in", V11, TYPE, "destination.packets", TYPE, NONE, NONE) \
	X(DNS_ID, "query.packet_uid", V11, TYPE, "dns.id", STRING, NONE, NONE)                     \
	X(DNS_NAME, "query.hostname", V11, TYPE, "dns.question.name", TYPE, "dhost", "dnsName")    \
	X(DNS_TYPE, "query.type", V11, TYPE, "dns.question.type", TYPE, NONE, NONE)                \
	X(DNS_RCODE, "rcode", V11, TYPE, "dns.response_code", TYPE, NONE, NONE)                    \
	X(DNS_ANSWERS, NONE, V11, TYPE, "dns.answers", TYPE, "cs2", NONE)                           \
	X(DNS_TC, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                          \
	X(DNS_EDNS, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                        \
	X(DNS_UNSOLICITED, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                \
	X(DNS_MALFORMED, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                  \
	X(LIMIT_TYPE, "status_code", V11, TYPE, "event.reason", TYPE, "reason", "limit")           \
	X(LIMIT_VALUE, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                    \
	X(LIMIT_USED, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                     \
	X(ENFORCE_VERDICT, NONE, V11, TYPE, NONE, TYPE, "act", NONE)                                \
	X(ENFORCE_ENTRY, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                   \
	X(LIMIT_COUNT, "count", V11, TYPE, NONE, TYPE, "cnt", NONE)                                 \
	X(LIMIT_EFFECT, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                    \
	X(LIMIT_TARGET, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                    \
	X(OOM_TOTAL_VM, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                   \
	X(OOM_ANON, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                       \
	X(OOM_FILE, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                       \
	X(OOM_SHMEM, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                      \
	X(OOM_ADJ, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                        \
	X(ESCAPE_TYPE, "finding_info.analytic.name", V11, TYPE, "rule.name", TYPE, "cs4", "escape") \
	X(ESCAPE_DETAIL, "finding_info.desc", V11, TYPE, "event.reason", TYPE, "msg", "detail")    \
	X(ESCAPE_TARGET, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                  \
	X(ESCAPE_OLD, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                     \
	X(ESCAPE_NEW, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                     \
	X(ESCAPE_ARG0, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                    \
	X(ESCAPE_ARG1, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                    \
	X(ESCAPE_ARG2, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                    \
	X(ESCAPE_KILLED, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                  \
	X(RUN_BACKEND, NONE, V11, TYPE, "container.runtime", TYPE, NONE, NONE)                     \
	X(RUN_COMMAND, NONE, V11, TYPE, NONE, TYPE, NONE, "command")                               \
	X(RUN_POLICY, NONE, V11, TYPE, NONE, TYPE, NONE, "policy")                                 \
	X(RUN_TIER, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                       \
	X(RUN_REASON, "status_detail", V11, TYPE, "event.reason", TYPE, "reason", "reason")        \
	X(RUN_CPU, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                        \
	X(RUN_MEM_PEAK, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                   \
	X(RUN_PIDS_PEAK, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                  \
	X(RUN_STDOUT, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                     \
	X(RUN_STDERR, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                     \
	X(RULE_NAME, "finding_info.title", V11, TYPE, "rule.name", TYPE, "cs5", "rule")            \
	X(RULE_PRIORITY, NONE, V11, TYPE, "log.level", TYPE, NONE, "priority")                     \
	X(RULE_OUTPUT, "message", V11, TYPE, "message", TYPE, "msg", "message")                    \
	X(RULE_TAGS, "metadata.labels", V11, TYPE, "tags", TYPE, NONE, NONE)                       \
	X(RULE_ATTACK, "+", V11, TYPE, "threat.technique.id", TYPE, "cs3", "attack")               \
	X(RULE_SUPPRESSED, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                \
	X(RULE_ACTION, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                    \
	X(RULE_ENFORCED, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                  \
	X(RULE_SET, "finding_info.analytic.version", V11, TYPE, "rule.version", TYPE, NONE, NONE)  \
	X(RULE_TRIGGER, "finding_info.related_events[].uid", V11, TYPE, NONE, TYPE, NONE, "trigger") \
	X(RULE_TRIGGER_KIND, "finding_info.related_events[].type", V11, TYPE, NONE, TYPE, NONE, NONE) \
	X(ACTION_TYPE, NONE, V11, TYPE, NONE, TYPE, "act", "action")                               \
	X(ACTION_SCOPE, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                   \
	X(ACTION_RESULT, "status_detail", V11, TYPE, "event.reason", TYPE, "reason", "result")     \
	X(ACTION_LATENCY, NONE, V11, TYPE, "event.duration", TYPE, NONE, NONE)                     \
	X(ACTION_BY, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                      \
	X(ACTION_ID, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                      \
	X(ACTION_WHO, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                     \
	X(GAP_KIND, NONE, V11, TYPE, NONE, TYPE, NONE, NONE)                                       \
	X(GAP_COUNT, "count", V11, TYPE, NONE, TYPE, "cnt", "lost")                                \
	X(GAP_REASON, "status_detail", V11, TYPE, "event.reason", TYPE, "reason", "reason")        \
	X(GAP_FIRST, NONE, V11, TYPE, "event.start", TYPE, NONE, NONE)                             \
	X(GAP_LAST, NONE, V11, TYPE, "event.end", TYPE, NONE, NONE)                                \
	X(AUDIT_MESSAGE, "message", V11, TYPE, "message", TYPE, "msg", "message")
/* clang-format on */

enum ocsf_version { V11, V13, V15, V18 };

#endif
