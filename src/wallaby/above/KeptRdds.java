package wallaby;

import java.lang.ref.Cleaner;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.ActiveJob;
import org.apache.spark.scheduler.DAGScheduler;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;

/**
 * Which rows in the TaskManagers somebody can still read.
 *
 * Rows stay there as the files of a shuffle of Spark's do: until the RDD that reads them is gone, and with it the plan that
 * was executed, or the cached table. The JVM finds that out when it collects garbage, and is asked to some time after an
 * execution has ended. The rows of a DataFrame that was asked to keep them stay until they are released by name, or until
 * nobody has the DataFrame any more.
 *
 * Python waits in `next` for the names of rows that it may release.
 */
public class KeptRdds {
    public static final String EXECUTION = "spark.sql.execution.id";
    private static final long SWEEP_MS = 1000;
    /** After so long the JVM is asked to find out whether anybody has an RDD that no execution reads; then ever later. */
    private static final long COLLECT_MS = 30000;
    private static final long COLLECT_LATER = 4;
    /** Of so many bytes of one execution it is asked soon. */
    private static final long MUCH_BYTES = 256L << 20;
    private static final long SOON_MS = 2000;

    private final SparkContext context;
    private final Listener listener;
    private final Cleaner cleaner = Cleaner.create();
    private final LinkedBlockingQueue<String> gone = new LinkedBlockingQueue<String>();
    private final Map<String, Held> helds = Collections.synchronizedMap(new HashMap<String, Held>());
    /** The runs whose rows were released by name, and the rows of runs that stay, by run. */
    private final Set<String> forgotten = Collections.synchronizedSet(new HashSet<String>());
    private final Map<String, Staying> staying = Collections.synchronizedMap(new HashMap<String, Staying>());
    /** Executions that have ended, until what their late jobs left behind is gone too. */
    private final Set<String> over = Collections.synchronizedSet(new HashSet<String>());
    private volatile long collectAt = Long.MAX_VALUE;
    private volatile boolean closed = false;

    public KeptRdds(SparkContext context) {
        this.context = context;
        listener = new Listener(this);
        context.addSparkListener(listener);
    }

    public SparkContext context() {
        return context;
    }

    public boolean isClosed() {
        return closed;
    }

    public void close() {
        closed = true;
        context.removeSparkListener(listener);
        gone.add("");
    }

    // --- what stays ----------------------------------------------------------------------------------

    /** A run begins to exist: tell when nobody can execute it any more. */
    public void watch(Object run, String id) {
        cleaner.register(run, new Unreachable(this, id, true));
    }

    /** Rows stay for the execution that reads them now, and for whoever has the RDD. */
    public void hold(RDD rdd, String kept, long bytes) {
        helds.put(kept, new Held(context.getLocalProperty(EXECUTION), bytes));
        cleaner.register(rdd, new Unreachable(this, kept, false));
    }

    /** The rows of a run stay until they are released by name, or nobody can execute the run any more. */
    public void stay(String id, String kept, RDD rdd) {
        staying.put(id, new Staying(kept, rdd));
    }

    /** The rows of a DataFrame that stayed until now are not wanted any more: by the id of its run. */
    public void forget(String id) {
        forgotten.add(id);
        Staying found = (Staying) staying.remove(id);
        if (found != null) {
            gone.add(found.kept);
        }
    }

    public boolean isForgotten(String id) {
        return forgotten.contains(id);
    }

    // --- what goes -----------------------------------------------------------------------------------

    /** The next rows that nobody can read any more; null if there are none for so long, empty at the end. */
    public String next(long milliseconds) throws InterruptedException {
        long until = System.currentTimeMillis() + milliseconds;
        while (true) {
            long left = until - System.currentTimeMillis();
            if (left <= 0) {
                return null;
            }
            String found = (String) gone.poll(Math.min(left, SWEEP_MS), TimeUnit.MILLISECONDS);
            if (found != null) {
                return found;
            }
            sweep();
        }
    }

    /** For whoever cannot wait: look now whether anybody has the RDDs that no execution reads. */
    public void collect() {
        forgetLateJobs();
        System.gc();
    }

    private void release(String kept) {
        if (helds.remove(kept) != null) {
            gone.add(kept);
        }
    }

    /** Nobody can execute a run any more. Whoever has its RDD can still read its rows. */
    private void end(String id) {
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

    /** An execution has ended: much that it alone could read should go soon, the rest may wait. */
    private void ended(String execution) {
        long now = System.currentTimeMillis();
        long bytes = 0;
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

    /** Ask the JVM, now and then, whether anybody has the RDDs that no execution reads. */
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
     * Spark remembers the jobs of an execution until it ends. Those that come later, of an iterator that outlives its
     * execution, it would remember for ever, and all RDDs below them.
     */
    private void forgetLateJobs() {
        Map remembered;
        try {
            remembered = (Map) DAGScheduler.class.getMethod("activeQueryToJobs", new Class[0])
                .invoke(context.dagScheduler(), new Object[0]);
        } catch (ReflectiveOperationException none) {
            return;  // another version of Spark remembers nothing
        }
        Set<String> running = new HashSet<String>();
        scala.collection.Iterator active = context.dagScheduler().activeJobs().iterator();
        while (active.hasNext()) {
            java.util.Properties properties = ((ActiveJob) active.next()).properties();
            String execution = properties == null ? null : properties.getProperty(EXECUTION);
            if (execution != null) {
                running.add(execution);
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

    /** Rows that stay for the execution that reads them, and for whoever has the RDD. */
    public static class Held {
        final long bytes;
        volatile String execution;
        long collectAfter = COLLECT_MS;
        volatile long collectAt = System.currentTimeMillis() + COLLECT_MS;

        public Held(String execution, long bytes) {
            this.execution = execution;
            this.bytes = bytes;
        }
    }

    /** Rows that stay until they are released by name. */
    public static class Staying {
        final String kept;
        final WeakReference rdd;

        public Staying(String kept, RDD rdd) {
            this.kept = kept;
            this.rdd = new WeakReference(rdd);
        }
    }

    /** Nobody has the object that it was registered for any more: a run, by its id, or the RDD of some rows. */
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
