package wallaby;

import java.io.IOException;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.JobStatus;
import org.apache.hadoop.mapreduce.OutputCommitter;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.internal.io.HadoopMapReduceCommitProtocol;
import org.apache.spark.sql.execution.datasources.WriteFilesSpec;

/**
 * Tables that stay as they are until a write to them is committed.
 *
 * Spark's command deletes what is to be overwritten before its query runs, through the file system that its path names. A path
 * of ours names one that only remembers it. Spark's commit protocol has a committer of Hadoop's; one of ours around it
 * publishes, and deletes, in the moment of the commit.
 */
public class KeptTables {
    /** What Hadoop's committers make in the folder of a table while they work. */
    private static final String WORKING = "_temporary";
    /** Where Spark's tasks stage files of partitions that are elsewhere. */
    private static final String STAGING = ".spark-staging-";
    /** Where the magic committer keeps what is not committed; it makes the folder before Spark's tasks begin. */
    private static final String MAGIC = "__magic";
    /** The file systems of tables that can be held: a disk, and S3 under both of its names. */
    private static final List SCHEMES = java.util.Arrays.asList(new Object[] {"file", "s3a", "s3"});
    private static final String VERSION = "mapreduce.fileoutputcommitter.algorithm.version";

    /** Who is told what becomes of a write. */
    public interface Told {
        void tell(String word, String job);
    }

    /** Is the committer of a write one that only moves files, at the end? Then it does not matter who moves them. */
    public static boolean isSparks(WriteFilesSpec spec) {
        OutputCommitter committer = committer(spec);
        String name = committer == null ? "" : committer.getClass().getName();
        Configuration conf = spec.description().serializableHadoopConf().value();
        return "1".equals(conf.get(VERSION, "1")) && ("org.apache.parquet.hadoop.ParquetOutputCommitter".equals(name)
            || "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter".equals(name));
    }

    /** Have a write published by Python when Spark commits it; with `whole`, nothing is left to do for Hadoop's committer. */
    public static void commitHere(WriteFilesSpec spec, Told writes, boolean whole) {
        replace(spec, new Committer(committer(spec), writes, spec.description().uuid(), whole, null));
    }

    private static OutputCommitter committer(WriteFilesSpec spec) {
        try {
            return (OutputCommitter) field().get(spec.committer());
        } catch (ReflectiveOperationException unknown) {
            return null;
        }
    }

    private static void replace(WriteFilesSpec spec, OutputCommitter committer) {
        try {
            field().set(spec.committer(), committer);
        } catch (ReflectiveOperationException unknown) {
            throw new IllegalStateException(unknown);
        }
    }

    private static Field field() throws ReflectiveOperationException {
        Field field = HadoopMapReduceCommitProtocol.class.getDeclaredField("committer");
        field.setAccessible(true);
        return field;
    }

    /** Where a command of Spark's writes. */
    public static class TablePath extends Path {
        private final List held = new ArrayList();
        private FileSystem system = null;
        private boolean existed = false;

        public TablePath(Path path) {
            super(path.toUri());
        }

        /** Spark asks when its command begins. */
        public synchronized FileSystem getFileSystem(Configuration conf) throws IOException {
            FileSystem real = super.getFileSystem(conf);
            if (!SCHEMES.contains(real.getUri().getScheme())) {
                return real;
            }
            if (system == null) {
                existed = real.exists(this);
                system = real;
            }
            return new Holding(real, held);
        }

        /** Does Spark delete nothing before the commit? */
        public boolean isHeld() {
            return system != null;
        }

        /** The address of the file system. */
        public String root() {
            return system.getUri().toString();
        }

        /** Was there something at this path when the command began? */
        public boolean existed() {
            return existed;
        }

        /** What Spark would have deleted, as paths of the operating system. */
        public List deleted() {
            List paths = new ArrayList();
            for (int at = 0; at < held.size(); at++) {
                paths.add(((Path) held.get(at)).toUri().getPath());
            }
            return paths;
        }

        /** Spark's own tasks are going to write: delete what has to be deleted when they are done, or now if it must be. */
        public void leaveToSpark(WriteFilesSpec spec) throws IOException {
            if (system == null) {
                return;
            }
            if (!existed) {
                system.mkdirs(new Path(new Path(spec.description().path(), WORKING), "0"));
            }
            if (held.isEmpty()) {
                return;
            }
            if (isSparks(spec)) {
                replace(spec, new Committer(committer(spec), null, null, false, this));
            } else {
                delete();
            }
        }

        void delete() throws IOException {
            for (int at = 0; at < held.size(); at++) {
                Path path = (Path) held.get(at);
                if (!path.toUri().getPath().equals(toUri().getPath())) {
                    system.delete(path, true);
                    continue;
                }
                FileStatus[] there = system.listStatus(path);
                for (int number = 0; number < there.length; number++) {
                    String name = there[number].getPath().getName();
                    if (!WORKING.equals(name) && !name.startsWith(STAGING) && !name.startsWith(MAGIC)) {
                        system.delete(there[number].getPath(), true);
                    }
                }
            }
        }
    }

    /** A file system that remembers what it is told to delete. */
    public static class Holding extends FilterFileSystem {
        private final List held;

        public Holding(FileSystem system, List held) {
            super(system);
            this.held = held;
        }

        public boolean delete(Path path, boolean recursive) throws IOException {
            if (!getFileStatus(path).isDirectory()) {
                return super.delete(path, recursive);  // a table cannot be staged where a file is in its way
            }
            held.add(path);
            return true;
        }
    }

    /** A committer of Hadoop's, in the driver, and what has to happen in the moment of the commit. */
    public static class Committer extends OutputCommitter {
        private final OutputCommitter hadoops;
        private final Told writes;
        private final String job;
        private final boolean whole;
        private final TablePath deleting;

        public Committer(OutputCommitter hadoops, Told writes, String job, boolean whole, TablePath deleting) {
            this.hadoops = hadoops;
            this.writes = writes;
            this.job = job;
            this.whole = whole;
            this.deleting = deleting;
        }

        public void commitJob(JobContext context) throws IOException {
            if (deleting != null) {
                deleting.delete();
                hadoops.commitJob(context);
                return;
            }
            writes.tell("publish", job);
            if (!whole) {
                hadoops.commitJob(context);
            }
            writes.tell("finish", job);
        }

        public void abortJob(JobContext context, JobStatus.State state) throws IOException {
            try {
                if (writes != null) {
                    writes.tell("abandon", job);
                }
            } finally {
                hadoops.abortJob(context, state);
            }
        }

        public void setupJob(JobContext context) throws IOException {
            hadoops.setupJob(context);
        }

        public void setupTask(TaskAttemptContext context) throws IOException {
            hadoops.setupTask(context);
        }

        public boolean needsTaskCommit(TaskAttemptContext context) throws IOException {
            return hadoops.needsTaskCommit(context);
        }

        public void commitTask(TaskAttemptContext context) throws IOException {
            hadoops.commitTask(context);
        }

        public void abortTask(TaskAttemptContext context) throws IOException {
            hadoops.abortTask(context);
        }
    }
}
