package wallaby;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.spark.JobArtifactSet;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkException;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.ActiveJob;
import org.apache.spark.scheduler.AllJobsCancelled$;
import org.apache.spark.scheduler.DAGScheduler;
import org.apache.spark.scheduler.DAGSchedulerEventProcessLoop;
import org.apache.spark.scheduler.JobCancelled;
import org.apache.spark.scheduler.JobFailed;
import org.apache.spark.scheduler.JobListener;
import org.apache.spark.scheduler.JobResult;
import org.apache.spark.scheduler.JobSucceeded$;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.Stage;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.util.Utils$;
import scala.Option;
import scala.reflect.ClassTag$;

/**
 * Each query of an engine as a Spark job without tasks, so that whatever cancels Spark's jobs cancels it too.
 *
 * Spark's scheduler knows of such a job what it knows of any other: group, tags, description, session and operation. It
 * takes no slot, since there is nothing to schedule: its only stage has no partition. It is active until `finish`, and
 * if it is cancelled before, by whomever, `next` tells so, with Spark's own exception.
 *
 * The scheduler's state belongs to the thread of its event loop. What is done to it here is done there, by an errand: an
 * event that Spark takes for the cancellation of a job, and that asks for the job's number when it is handled.
 *
 * A TaskManager is a job too. In front of the event loop stands one that lets everything through but the cancellation of
 * all jobs: it becomes the cancellation of all but the TaskManagers'.
 *
 * Spark compiles this file in the driver with Janino; see PlanWriter.java for what that means.
 */
public class QueryJobs {
    private static final String TAGS = "spark.job.tags";
    private static final String DESCRIPTION = "spark.job.description";
    private static final String CONNECT_TAG = "SparkConnect_OperationTag";
    private static final String EVERY_JOB = "as part of cancellation of all jobs";
    private static final int NO_JOB = -1;
    /** How far below the root the SQL is looked for, and how much of it is told: see PlanWriter.PIECE_CHARACTERS. */
    private static final int DEPTH_MAX = 32;
    private static final int TOLD_CHARACTERS = 3500;

    private final SparkContext context;
    private final DAGScheduler scheduler;
    private final DAGSchedulerEventProcessLoop loop;
    private final Guard guard;
    private final String spared;
    private final Method cleanUp;
    private final Method nextExecution;
    private final LinkedBlockingQueue<Object[]> ends = new LinkedBlockingQueue<Object[]>();

    /** `spared` is the tag of the jobs that are not cancelled with all others. */
    public QueryJobs(SparkContext context, String spared) throws Exception {
        this.context = context;
        this.spared = spared;
        scheduler = context.dagScheduler();
        cleanUp = DAGScheduler.class.getDeclaredMethod(
            "cleanupStateForJobAndIndependentStages", new Class[] {ActiveJob.class});
        cleanUp.setAccessible(true);
        nextExecution = SQLExecution$.class.getDeclaredMethod("nextExecutionId", new Class[0]);
        nextExecution.setAccessible(true);
        loop = scheduler.eventProcessLoop();
        guard = new Guard(this, scheduler, loop);
        scheduler.eventProcessLoop_$eq(guard);
    }

    /**
     * The job of a query that the calling thread begins: its number, that of the operation it belongs to, and the tag of
     * Spark Connect's operation, if it belongs to one.
     */
    public String begin(SparkSession session, String description) throws Exception {
        int job = scheduler.nextJobId().getAndIncrement();
        Properties properties = (Properties) context.getLocalProperties().clone();
        String root = properties.getProperty(SQLExecution$.MODULE$.EXECUTION_ROOT_ID_KEY());
        long operation = root == null
            ? ((Long) nextExecution.invoke(SQLExecution$.MODULE$, new Object[0])).longValue() : Long.parseLong(root);
        properties.setProperty(SQLExecution$.MODULE$.EXECUTION_ROOT_ID_KEY(), String.valueOf(operation));
        List<String> tags = new ArrayList<String>();
        String inherited = properties.getProperty(TAGS);
        if (inherited != null && !inherited.isEmpty()) {
            tags.addAll(Arrays.asList((Object[]) inherited.split(",")));
        }
        scala.collection.Iterator own = ((scala.collection.mutable.Map) session.managedJobTags().get()).valuesIterator();
        while (own.hasNext()) {
            tags.add((String) own.next());
        }
        tags.add(session.sessionJobTag());
        tags.add(SQLExecution$.MODULE$.executionIdJobTag(session, operation));
        properties.setProperty(TAGS, String.join(",", tags));
        if (properties.getProperty(DESCRIPTION) == null) {
            properties.setProperty(DESCRIPTION, description);
        }
        RDD nothing = context.emptyRDD(ClassTag$.MODULE$.Object());
        JobArtifactSet artifacts = JobArtifactSet.getActiveOrDefault(context);
        guard.post(new Errand(this, new Begin(this, job, nothing, properties, artifacts)));
        String ofConnect = "";
        for (int at = 0; at < tags.size(); at++) {
            if (((String) tags.get(at)).startsWith(CONNECT_TAG)) {
                ofConnect = " " + tags.get(at);
            }
        }
        return job + " " + operation + ofConnect;
    }

    /** The SQL of a query, or of what it is made from, and the description of this thread's jobs, with a zero byte between. */
    public String told(Object query) {
        Dataset dataset = (Dataset) query;
        SQLConf settings = dataset.sparkSession().sessionState().conf();
        LogicalPlan plan = dataset.queryExecution().logical();
        String sql = "";
        for (int depth = 0; plan != null && sql.isEmpty() && depth < DEPTH_MAX; depth++) {
            Option text = plan.origin().sqlText();
            if (text.isDefined()) {
                sql = Utils$.MODULE$.redact(settings.stringRedactionPattern(), shortened((String) text.get()));
            }
            plan = plan.children().isEmpty() ? null : (LogicalPlan) plan.children().head();
        }
        String description = context.getLocalProperty(DESCRIPTION);
        return sql + '\0' + (description == null ? "" : shortened(description));
    }

    private static String shortened(String text) {
        return text.length() <= TOLD_CHARACTERS ? text : text.substring(0, TOLD_CHARACTERS);
    }

    /** The entries of a session whose keys begin so: keys and values in turn, each after a zero byte. */
    public String settings(SparkSession session, String prefix) {
        StringBuilder found = new StringBuilder();
        scala.collection.Iterator entries = session.sessionState().conf().getAllConfs().iterator();
        while (entries.hasNext()) {
            scala.Tuple2 entry = (scala.Tuple2) entries.next();
            if (((String) entry._1()).startsWith(prefix)) {
                found.append('\0').append(entry._1()).append('\0').append(entry._2());
            }
        }
        return found.toString();
    }

    /** A query has ended, with an error if there is a text. Does nothing if its job has ended already. */
    public void finish(int job, String error) {
        guard.post(new Errand(this, new Finish(this, job, error)));
    }

    /** The next job that Spark has ended, as number and exception; null if there is none within the time. */
    public Object[] next(long milliseconds) throws InterruptedException {
        Object[] end = (Object[]) ends.poll(milliseconds, TimeUnit.MILLISECONDS);
        return end == null || end.length == 0 ? null : end;
    }

    /** Cancel all jobs but those that are spared. */
    public void cancelOthers() {
        guard.post(new Errand(this, new CancelOthers(this)));
    }

    /** Restore Spark's scheduler; a thread that waits in `next` is not woken. */
    public void close() {
        if (scheduler.eventProcessLoop() == guard) {
            scheduler.eventProcessLoop_$eq(loop);
        }
        ends.add(new Object[0]);
    }

    static boolean hasTag(ActiveJob job, String tag) {
        String tags = job.properties() == null ? null : job.properties().getProperty(TAGS);
        return tags != null && Arrays.asList((Object[]) tags.split(",")).contains(tag);
    }

    /** A wrapper around Spark's event loop. It has no thread of its own: events go to the original loop. */
    public static class Guard extends DAGSchedulerEventProcessLoop {
        private final QueryJobs jobs;
        private final DAGSchedulerEventProcessLoop loop;

        public Guard(QueryJobs jobs, DAGScheduler scheduler, DAGSchedulerEventProcessLoop loop) {
            super(scheduler);
            this.jobs = jobs;
            this.loop = loop;
        }

        public void post(Object event) {
            if (event == AllJobsCancelled$.MODULE$) {
                jobs.cancelOthers();
            } else {
                ((org.apache.spark.util.EventLoop) loop).post(event);
            }
        }

        public void stop() {
            loop.stop();
        }

        public boolean isActive() {
            return loop.isActive();
        }
    }

    /** An event that runs code on the event loop's thread, once, and cancels no job. */
    public static class Errand extends JobCancelled {
        private final QueryJobs jobs;
        private Runnable work;

        public Errand(QueryJobs jobs, Runnable work) {
            super(NO_JOB, Option.apply((String) null));
            this.jobs = jobs;
            this.work = work;
        }

        public int jobId() {
            if (work != null && Thread.currentThread() == jobs.loop.eventThread()) {
                Runnable now = work;
                work = null;
                now.run();
            }
            return NO_JOB;
        }
    }

    /** Puts a job without tasks among the running ones. */
    public static class Begin implements Runnable, JobListener {
        private final QueryJobs jobs;
        private final int job;
        private final RDD nothing;
        private final Properties properties;
        private final JobArtifactSet artifacts;

        public Begin(QueryJobs jobs, int job, RDD nothing, Properties properties, JobArtifactSet artifacts) {
            this.jobs = jobs;
            this.job = job;
            this.nothing = nothing;
            this.properties = properties;
            this.artifacts = artifacts;
        }

        public void run() {
            try {
                jobs.scheduler.handleJobSubmitted(
                    job, nothing, null, new int[0], nothing.creationSite(), this, artifacts, properties);
                Option found = jobs.scheduler.jobIdToActiveJob().get(Integer.valueOf(job));
                if (found.isDefined()) {
                    // A stage without tasks would end at once. It counts as running as long as the query runs.
                    jobs.scheduler.runningStages().add(((ActiveJob) found.get()).finalStage());
                }
            } catch (Exception error) {
                jobFailed(error);
            }
        }

        public void taskSucceeded(int index, Object result) {
        }

        public void jobFailed(Exception error) {
            jobs.ends.add(new Object[] {Integer.valueOf(job), error});
        }
    }

    /** Ends a job as Spark ends one whose tasks have ended. */
    public static class Finish implements Runnable {
        private final QueryJobs jobs;
        private final int job;
        private final String error;

        public Finish(QueryJobs jobs, int job, String error) {
            this.jobs = jobs;
            this.job = job;
            this.error = error;
        }

        public void run() {
            Option found = jobs.scheduler.jobIdToActiveJob().get(Integer.valueOf(job));
            if (!found.isDefined()) {
                return;
            }
            ActiveJob active = (ActiveJob) found.get();
            Stage stage = active.finalStage();
            jobs.scheduler.runningStages().remove(stage);
            try {
                jobs.cleanUp.invoke(jobs.scheduler, new Object[] {active});
            } catch (ReflectiveOperationException failure) {
                throw new IllegalStateException(failure);
            }
            JobResult result = error == null
                ? (JobResult) JobSucceeded$.MODULE$ : (JobResult) new JobFailed(new SparkException(error));
            jobs.context.listenerBus().post(new SparkListenerJobEnd(job, System.currentTimeMillis(), result));
        }
    }

    /** Cancels every job but the TaskManagers'. */
    public static class CancelOthers implements Runnable {
        private final QueryJobs jobs;

        public CancelOthers(QueryJobs jobs) {
            this.jobs = jobs;
        }

        public void run() {
            List<Integer> others = new ArrayList<Integer>(SparkVersions.deferredJobs(jobs.scheduler));
            scala.collection.Iterator active = jobs.scheduler.activeJobs().iterator();
            while (active.hasNext()) {
                ActiveJob job = (ActiveJob) active.next();
                if (!hasTag(job, jobs.spared)) {
                    others.add(Integer.valueOf(job.jobId()));
                }
            }
            for (int at = 0; at < others.size(); at++) {
                int job = ((Integer) others.get(at)).intValue();
                jobs.scheduler.handleJobCancellation(job, Option.apply(EVERY_JOB));
            }
        }
    }
}
