package wallaby;

import java.lang.ref.Cleaner;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.apache.spark.SparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.ActiveJob;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;

/**
 * Finds kept rows that have become unreachable.
 *
 * Rows are kept like the files of a Spark shuffle: until the RDD that reads them is garbage, and with it the plan that was
 * executed, or the cached table. The JVM notices that when it collects garbage, which it is asked to do some time after an
 * execution has ended. The rows of a persisted DataFrame are kept until they are released by name, or until the DataFrame
 * itself is garbage.
 *
 * Python waits in `next` for the names of rows that it may release.
 */
public class KeptRdds {
    public static final String EXECUTION = "spark.sql.execution.id";
    private static final long SWEEP_MS = 1000;
    /** In the words in which a task raises it, so that whoever started the job gets this error. */
    private static final String CLOSED =
        "\n" + PartRun.RAISED + "The engine was closed while Spark's tasks read rows from it. Create the DataFrame again.\n\n";
    /** How long after an execution the JVM is asked to collect unreachable RDDs; then at growing intervals. */
    private static final long COLLECT_MS = 30000;
    private static final long COLLECT_LATER = 4;
    /** If an execution kept this many bytes, the JVM is asked soon. */
    private static final long MUCH_BYTES = 256L << 20;
    private static final long SOON_MS = 2000;

    private final SparkContext context;
    private final Listener listener;
    private final Cleaner cleaner = Cleaner.create();
    private final LinkedBlockingQueue<String> gone = new LinkedBlockingQueue<String>();
    private final Map<String, Held> helds = Collections.synchronizedMap(new HashMap<String, Held>());
    /** The runs whose rows were released by name, and the kept rows of other runs. */
    private final Set<String> forgotten = Collections.synchronizedSet(new HashSet<String>());
    private final Map<String, Staying> staying = Collections.synchronizedMap(new HashMap<String, Staying>());
    /** Who is told of losses, by the names of rows. */
    private final Map<String, WeakReference> reporteds = Collections.synchronizedMap(new HashMap<String, WeakReference>());
    /** Ended executions, until the leftovers of their late jobs are gone too. */
    private final Set<String> over = Collections.synchronizedSet(new HashSet<String>());
    /** The executions that ended last, of all. */
    private final Set<String> finished = Collections.synchronizedSet(Collections.newSetFromMap(new Latest()));
    private volatile long collectAt = Long.MAX_VALUE;
    private volatile boolean closed = false;
    private Function there;

    public KeptRdds(SparkContext context) {
        this.context = context;
        listener = new Listener(this);
        context.addSparkListener(listener);
    }

    /** `there` says whether kept rows can be read, by their name. */
    public void connect(Function there) {
        this.there = there;
    }

    public SparkContext context() {
        return context;
    }

    public boolean isClosed() {
        return closed;
    }

    public void close() {
        closed = true;
        cancelReaders();
        context.removeSparkListener(listener);
        gone.add("");
    }

    /** Tasks that read kept rows would wait for TaskManagers that end now. */
    private void cancelReaders() {
        scala.collection.Iterator active = context.dagScheduler().activeJobs().toList().iterator();
        while (active.hasNext()) {
            ActiveJob job = (ActiveJob) active.next();
            if (PartRdd.isBelow(job.finalStage().rdd())) {
                context.cancelJob(job.jobId(), CLOSED);
            }
        }
    }

    // --- keeping -------------------------------------------------------------------------------------

    /** Register a run, to report it when it can no longer be executed. */
    public void watch(Object run, String id) {
        cleaner.register(run, new Unreachable(this, id, true));
    }

    /** Keep rows for the execution that reads them now, and while their RDD is reachable. */
    public void hold(RDD rdd, String kept, long bytes) {
        String execution = context.getLocalProperty(EXECUTION);
        Held held = new Held(execution, bytes);
        helds.put(kept, held);
        if (execution != null && finished.contains(execution)) { // an iterator begins to read after its execution
            held.execution = null;
        }
        cleaner.register(rdd, new Unreachable(this, kept, false));
    }

    /** A sub-plan is not executed: another one that is equal takes its place. */
    public void drop(String id) {
        gone.add(id);
    }

    /** Can kept rows still be read? They are lost with the store that describes them. */
    public boolean isThere(String kept) {
        return ((Boolean) Calls.apply(context, there, kept)).booleanValue();
    }

    /** From now on, report losses of these rows. */
    public void report(String kept, Reported reported) {
        reporteds.put(kept, new WeakReference(reported));
    }

    /** A TaskManager with some of these rows was lost; they are being made again. */
    public void lose(String kept) {
        WeakReference found = (WeakReference) reporteds.get(kept);
        Reported reported = found == null ? null : (Reported) found.get();
        if (reported != null) {
            reported.lose();
        }
    }

    /** Keep the rows of a run until they are released by name, or until the run can no longer be executed. */
    public synchronized void stay(String id, String kept, RDD rdd) {
        if (forgotten.contains(id)) { // while the run was under way
            gone.add(kept);
        } else {
            staying.put(id, new Staying(kept, rdd));
        }
    }

    /** Release the kept rows of a DataFrame, by the id of its run. */
    public synchronized void forget(String id) {
        forgotten.add(id);
        Staying found = (Staying) staying.remove(id);
        if (found != null) {
            gone.add(found.kept);
        }
    }

    /** Do the rows of a run stay? Not before it has run, and not if Spark has to compute them. */
    public boolean isStaying(String id) {
        return staying.containsKey(id);
    }

    public boolean isForgotten(String id) {
        return forgotten.contains(id);
    }

    // --- releasing -----------------------------------------------------------------------------------

    /** The next rows that have become unreachable; null if none did in that time, empty at the end. */
    public String next(long milliseconds) throws InterruptedException {
        long until = System.currentTimeMillis() + milliseconds;
        while (true) {
            long left = until - System.currentTimeMillis();
            if (left <= 0) {
                return null;
            }
            String found = (String) gone.poll(Math.min(left, SWEEP_MS), TimeUnit.MILLISECONDS);
            if (found != null) {
                reporteds.remove(found);
                return found;
            }
            sweep();
        }
    }

    /** Look now for unreachable RDDs that no execution reads. */
    public void collect() {
        forgetLateJobs();
        System.gc();
    }

    private void release(String kept) {
        if (helds.remove(kept) != null) {
            gone.add(kept);
        }
    }

    /** A run can no longer be executed. Its rows can still be read while its RDD is reachable. */
    private synchronized void end(String id) {
        gone.add(id);
        forgotten.remove(id);
        Staying found = (Staying) staying.remove(id);
        RDD rdd = found == null ? null : (RDD) found.rdd.get();
        if (rdd != null) {
            hold(rdd, found.kept, 0);
        } else if (found != null) {
            gone.add(found.kept);
        }
    }

    /** An execution has ended: release many bytes soon; a few can wait. */
    private void ended(String execution) {
        long now = System.currentTimeMillis();
        long bytes = 0;
        finished.add(execution);
        if (!helds.isEmpty() || !staying.isEmpty()) {
            over.add(execution);
        }
        Iterator each = new ArrayList(helds.values()).iterator();
        while (each.hasNext()) {
            Held held = (Held) each.next();
            if (execution.equals(held.execution)) {
                held.execution = null;
                held.collectAt = now + COLLECT_MS;
                bytes += held.bytes;
            }
        }
        if (bytes >= MUCH_BYTES) {
            collectAt = now + SOON_MS;
        }
    }

    /** From time to time, let the JVM look for unreachable RDDs that no execution reads. */
    private void sweep() {
        long now = System.currentTimeMillis();
        boolean due = now > collectAt;
        Iterator each = new ArrayList(helds.values()).iterator();
        while (each.hasNext()) {
            Held held = (Held) each.next();
            if (held.execution == null && now > held.collectAt) {
                due = true;
                held.collectAfter *= COLLECT_LATER;
                held.collectAt = now + held.collectAfter;
            }
        }
        if (due) {
            collectAt = Long.MAX_VALUE;
            collect();
        }
    }

    /**
     * Spark remembers the jobs of an execution until the execution ends. It would remember later jobs, of an iterator that
     * outlives its execution, for ever, together with all RDDs below them.
     */
    private void forgetLateJobs() {
        Map remembered = SparkVersions.jobsOfExecutions(context.dagScheduler());
        Set<String> running = new HashSet<String>();
        scala.collection.Iterator active = context.dagScheduler().activeJobs().iterator();
        while (active.hasNext()) {
            java.util.Properties properties = ((ActiveJob) active.next()).properties();
            String execution = properties == null ? null : properties.getProperty(EXECUTION);
            if (execution != null) {
                running.add(execution);
            }
        }
        Iterator held = new ArrayList(helds.values()).iterator();
        while (held.hasNext()) {
            Held found = (Held) held.next();
            if (found.execution == null && found.ran != null) {
                over.add(found.ran);
            }
        }
        Iterator each = new ArrayList(over).iterator();
        while (each.hasNext()) {
            String execution = (String) each.next();
            if (!running.contains(execution)) {
                remembered.remove(Long.valueOf(execution));
                over.remove(execution);
            }
        }
    }

    /** Shows losses to whoever reads some rows. */
    public interface Reported {
        void lose();
    }

    /** Rows that are kept for the execution that reads them, and while their RDD is reachable. */
    public static class Held {
        final long bytes;
        /** The execution for which the rows were made, whether or not it has ended. */
        final String ran;
        volatile String execution;
        long collectAfter = COLLECT_MS;
        volatile long collectAt = System.currentTimeMillis() + COLLECT_MS;

        public Held(String execution, long bytes) {
            this.execution = execution;
            this.ran = execution;
            this.bytes = bytes;
        }
    }

    /** Rows that are kept until they are released by name. */
    public static class Staying {
        final String kept;
        final WeakReference rdd;

        public Staying(String kept, RDD rdd) {
            this.kept = kept;
            this.rdd = new WeakReference(rdd);
        }
    }

    /** The object that was registered has become unreachable: a run, by its id, or the RDD of some rows. */
    public static class Unreachable implements Runnable {
        private final KeptRdds rdds;
        private final String name;
        private final boolean isRun;

        public Unreachable(KeptRdds rdds, String name, boolean isRun) {
            this.rdds = rdds;
            this.name = name;
            this.isRun = isRun;
        }

        public void run() {
            if (isRun) {
                rdds.end(name);
            } else {
                rdds.release(name);
            }
        }
    }

    /** Forgets the oldest entries. */
    public static class Latest extends LinkedHashMap {
        private static final int MOST = 4096;

        protected boolean removeEldestEntry(Map.Entry eldest) {
            return size() > MOST;
        }
    }

    public static class Listener extends SparkListener {
        private final KeptRdds rdds;

        public Listener(KeptRdds rdds) {
            this.rdds = rdds;
        }

        public void onOtherEvent(SparkListenerEvent event) {
            if (event instanceof SparkListenerSQLExecutionEnd) {
                rdds.ended(String.valueOf(((SparkListenerSQLExecutionEnd) event).executionId()));
            }
        }
    }
}
