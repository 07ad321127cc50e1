/* The commands of jzx. Each gets argv[0], its own name, and returns an exit status. */
#ifndef JZX_CMD_JZX_H
#define JZX_CMD_JZX_H

/* Of running programs. */
int ps_main(int argc, char **argv);
int top_main(int argc, char **argv); /* if JZX_COMMAND_TOP */
int tree_main(int argc, char **argv);
int actor_main(int argc, char **argv);
int dead_main(int argc, char **argv);
int trace_main(int argc, char **argv);
int stuck_main(int argc, char **argv);
int doctor_main(int argc, char **argv);
int record_main(int argc, char **argv);
int metrics_main(int argc, char **argv);
int console_main(int argc, char **argv); /* if JZX_COMMAND_CONSOLE */
int order_main(int argc, char **argv);   /* stop, kill, restart, send */

/* Of files; if JZX_COMMAND_MANIFEST. */
int manifest_main(int argc, char **argv);

#endif
